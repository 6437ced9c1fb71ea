// Arming, pausing, forking and ending: the order in which the parts start and stop.
#pragma once

#include "stacks/threads.h"
#include "tachograph/api.h"

#include <sys/types.h>
#include <cstddef>

namespace tachograph::lifecycle {

int arm(const tg_options& options, const tg_walker& walker, char* error, size_t error_size);
// In a forked child that goes on with Python: starts a recording of its own.
int arm_again(const char* name, size_t length);
// Ends the recording of this process, with its last rows.
void finish();
// Ends a recording that was begun from inside (settings::set_from_inside): afterwards nothing of
// ours runs in this process, and another recording may begin. False: none can begin, because a
// thread of the recorder or of the program did not finish in time; the recording is complete.
// `early`: it ends before its time, for this errno; 0 if not.
bool disarm(int early);
void pause(bool yes);
// A thread of the extension's own, 0 for none: it is not recorded.
void leave_out(pid_t tid);
void restart_helper();
// The interpreter begins to shut down.
void exiting();

// The calling thread begins; `python_name` may be empty.
void begin_thread(const char* python_name, size_t length, const threads::Beginning& beginning = {});

// Before and after an exec of the calling process (not of a vfork child). Disarms the thread's
// timer, whose signal would end the new program, and writes what is not written yet. `program` is
// the new program's file, nullptr if that is not known.
bool before_exec(const char* program);
void after_failed_exec();
// Adds to the count of programs that are started and not recorded: 1, or -1 if the exec failed.
// Also in a vfork child, which shares its parent's counters.
void count_exec(int more);

// Ends recording for good, with its last rows, before the program enters a sandbox or the like, in
// which the recorder's system calls may be fatal. `error` is the reason, as an errno. From then on
// the hooks make no system calls.
void end_early(int error);

// Around a call that the kernel refuses to a process with several threads: stops the helper. True:
// the helper must be started again.
bool before_lone_call();
void after_lone_call();

// The calling thread has given up rights by a raw system call, which changes that thread alone: the
// helper is started anew by it, and so has the same rights.
void after_change_of_rights();

// The calling thread calls PTRACE_TRACEME: it must get no signal of ours, since its tracer would be
// told of each one. True unless it was traced already.
bool before_trace();
void after_failed_trace();

}  // namespace tachograph::lifecycle
