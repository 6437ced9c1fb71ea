// One CPU-time timer per thread, jittered, delivering the sampling signal to that thread.
#pragma once

#include "stacks/threads.h"

#include <csignal>

namespace tachograph::timers {

// Chooses a signal that the program does not use and installs `handler` for it. 0 or errno.
using Handler = void (*)(int signal, siginfo_t* info, void* context);
int install(Handler handler);
// In a forked child: puts back what was there before us.
void remove();
// In a process that is not recorded any more: signals of ours that still wait are discarded.
void retire();

// Makes and starts the thread's timer; counts a refusal (the helper then samples from outside). Not
// where another thread than the calling one blocks the signal, as it may where recording begins in
// mid-run: it would wait there for a sigwait or a signalfd of the program's.
void arm(threads::Thread* thread);
void disarm(threads::Thread* thread);
// Threads that blocked the signal get their timers when they do not any more.
void arm_those_that_blocked(int64_t now_ns);
void disarm_all();
// For the handler: draws the next expiry; returns how many were missed until `cpu_ns`.
uint32_t schedule_next(threads::Thread* thread, int64_t cpu_ns);

int signal_number();
// The program has this alternate stack: where it has no room for our handler, no handler of ours
// runs on alternate stacks any more. (Otherwise it must: a thread may be on a stack of a few KB, as
// Go's are, with a large alternate one.)
void saw_alternate_stack(const stack_t& stack);
// The program takes our signal for itself: all timers move to another one.
void yield_signal();

}  // namespace tachograph::timers
