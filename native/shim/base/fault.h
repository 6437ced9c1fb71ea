// Our place in front of the program's SIGSEGV and SIGBUS handlers.
//
// A fault of one of our guarded instructions is mended; every other goes to the program exactly as
// if we were not there. What the program sets and asks through sigaction is what it sees.
#pragma once

#include <csignal>

namespace tachograph::fault {

void install();
// Puts the program's own actions back (in a forked child).
void remove();

// True if `signal` is one that we stand in front of; then set_program_action is its sigaction.
bool fronts(int signal);
int set_program_action(int signal, const struct sigaction* action, struct sigaction* old);

// Whether both handlers are still ours: a raw system call can replace them behind our back.
// Asked by the helper each tick; `trusted` is its last answer.
bool verify();
bool trusted();

}  // namespace tachograph::fault
