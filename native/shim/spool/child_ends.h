// What a process is told of its children when it takes their status (wait), on its way into the
// process log: a child that was killed cannot tell its own end.
#pragma once

#include <cstdint>

namespace tachograph::child_ends {

// CPU time is the child's own, without that of children which it waited for. Negative: unknown.
struct ChildEnd {
    int32_t pid;
    int32_t status;  // exit status, negative for a signal
    int64_t time_ns;
    int64_t user_ns;
    int64_t system_ns;
    int64_t max_resident_bytes;
};

// Whether this process writes into a process log, and so wants to be told.
bool wanted();
// Async-signal-safe. Where the process has other threads, or a helper thread, it waits here for
// the next `flush`: a file that is opened among the program's takes a number that another thread
// may be about to get.
void note(const ChildEnd& end);
// The process has made a thread.
void made_thread();
// Appends what waits. From the helper thread, which has descriptors of its own, or where the
// process ends or replaces its program.
void flush();

}  // namespace tachograph::child_ends
