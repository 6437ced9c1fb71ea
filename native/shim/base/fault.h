// Handlers of SIGSEGV and SIGBUS that run before the program's own.
//
// A fault of one of our guarded instructions is handled here; every other goes to the program
// exactly as if we were not there. What the program sets through sigaction is what it reads back.
#pragma once

#include <ucontext.h>
#include <csignal>

namespace tachograph::fault {

void install();
// Puts the program's own actions back (in a forked child).
void remove();

// True if `signal` is one of these two; then set_program_action is its sigaction.
bool fronts(int signal);
int set_program_action(int signal, const struct sigaction* action, struct sigaction* old);

// Whether both handlers are still ours: a raw system call can replace them behind our back.
// Asked by the helper each tick; `trusted` is its last answer.
bool verify();
// Whether a fault in a handler that has interrupted this would reach ours.
bool gets_through(const ucontext_t* interrupted);
bool trusted();

}  // namespace tachograph::fault
