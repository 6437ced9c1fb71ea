// What a process is told of its children when it takes their status (wait), on its way into the
// process log: a child that was killed cannot tell its own end.
#pragma once

#include "spool/process_log.h"

namespace tachograph::child_ends {

// Whether this process writes into a process log, and so wants to be told.
bool wanted();
// Async-signal-safe. With `aside`, or where the process has made threads, it waits here for the
// next `flush`: a file that is opened among the program's takes a number that another thread may be
// about to get. False: there is no room.
bool note(const process_log::ChildEnd& end, bool aside);
// The process has made a thread.
void made_thread();
// Whether something of this process waits for `flush`.
bool any_waits();
// Appends what waits. From the helper thread, which has descriptors of its own, or where the
// process ends or replaces its program.
void flush();

}  // namespace tachograph::child_ends
