// Arming, pausing, forking and ending: the order in which the parts start and stop.
#pragma once

#include "stacks/threads.h"
#include "tachograph/api.h"

#include <sys/types.h>
#include <cstddef>

namespace tachograph::lifecycle {

int arm(const tg_options& options, const tg_walker& walker, char* error, size_t error_size);
// In a forked child that goes on with Python: recording begins anew, as of another process.
int arm_again(const char* name, size_t length);
// The process ends now, or its recording does.
void finish();
// Ends a recording that was begun from inside (settings::set_from_inside): afterwards nothing of
// ours runs in this process, and another one may begin. False: not another one, as a thread of the
// recorder or of the program could not be waited for; the recording is whole all the same.
bool disarm();
void pause(bool yes);
// A thread of the extension's own, 0 for none: it is not recorded.
void leave_out(pid_t tid);
void restart_helper();
// The interpreter begins to shut down.
void exiting();

// The calling thread begins; `python_name` may be empty.
void begin_thread(const char* python_name, size_t length, const threads::Beginning& beginning = {});

// Before and after an exec of the calling process (not of a vfork child): no timer signal may be
// left pending for the new program, and what is not written yet is written. `program` is its file,
// nullptr if that is not known.
bool before_exec(const char* program);
void after_failed_exec();
// Counts a program that is started and not recorded (1), or takes it back (-1). Also in a vfork
// child, whose counters are its parent's.
void count_exec(int more);

// Ends recording for good, with its last rows, before the program does something (`error` stands
// for it) that the recorder could not go on under. The hooks make no system calls from then on.
void end_early(int error);

// Around a call that the kernel refuses to a process of several threads: our own is not there.
// Whether it is to come back.
bool before_lone_call();
void after_lone_call();

// The calling thread, and it alone, has given up rights: our own thread begins anew as its child,
// and has what it has.
void after_change_of_rights();

// The calling thread is about to have itself traced: it must take no signal of ours any more.
bool before_trace();  // whether that is new
void after_failed_trace();

}  // namespace tachograph::lifecycle
