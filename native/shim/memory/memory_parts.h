// What the process's memory consists of: the parts of its address space, as the kernel lists their
// pages (/proc/self/smaps), and what of the interpreter's pools is in use.
//
// The kernel walks the page tables for it, and keeps mappings from being made meanwhile. So it is
// read once a second at most, and all readings take a small part of the time.
#pragma once

#include "tachograph/api.h"

#include <cstdint>

namespace tachograph::memory_parts {

// The process is recorded from now on.
void begin(int64_t now_ns);
// The recorder's own thread: reads if it is time to. True: it did, and a row of the counters is
// due.
// `mappings` are the bytes of malloc's blocks that are mappings of their own; negative: not known,
// or malloc is not glibc's.
bool tick(int64_t now_ns, int64_t mappings);
// Before a process ends: once more, if that takes a small part of its time. `may_call`: the calling
// thread is in no handler and no hook, so that libraries can be asked what they hold.
bool settle(int64_t mappings, bool may_call);

// In a forked child, at a CPU sample of the calling thread, in the handler: the page faults that it
// had since the last one. The row has the sample's time, by which its CPU time is found.
void sampled(const tg_walk& found, int64_t time_ns);

void after_fork_in_child();

}  // namespace tachograph::memory_parts
