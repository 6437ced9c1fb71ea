// The look at all threads of the process: it finds those that no pthread_create of ours made.
#pragma once

#include <sys/types.h>

namespace tachograph::survey {

// `at_once`: all threads that are unknown now are the program's; else those that were unknown at
// the last look too. `helper` is our own, 0 while there is none. Whether any thread of the program
// lives.
bool look(bool at_once, pid_t helper);

// A thread that is none of the program's, 0 for none.
void leave_out(pid_t tid);
pid_t left_out();

// In a forked child: nothing is known of its threads.
void forget();

}  // namespace tachograph::survey
