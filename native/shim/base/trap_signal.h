// A handler of SIGTRAP for the traps of our watchpoints, in front of the program's default action.
//
// A trap of ours without a handler would be the program's death. So the handler stays for as long
// as one may come, and a program that wants SIGTRAP for itself gets it: then there are no
// watchpoints any more.
#pragma once

#include <ucontext.h>
#include <csignal>

namespace tachograph::trap_signal {

// Whether the trap was one of ours. All signals but faults are blocked while it runs.
using Handler = bool (*)(siginfo_t* info, ucontext_t* context);

// `taken` is called before the program gets SIGTRAP, and `blocked` before the calling thread blocks
// it. False: the program has a handler of its own already.
bool install(Handler handler, void (*taken)(), void (*blocked)());
// In a forked child: the program's action is back.
void remove();

// Whether SIGTRAP is ours now; then set_program_action is its sigaction.
bool fronts(int signal);
int set_program_action(int signal, const struct sigaction* action, struct sigaction* old);
// Whether a change of a thread's mask blocks SIGTRAP while it is ours. Before it is made, the
// thread calls `blocked`, and takes no sample until it is.
bool blocks(int how, const sigset_t* set);
void blocked();

// Whether the handler is still ours: a raw system call can replace it behind our back.
bool verify();

// A trap of perf's (TRAP_PERF) as the kernel tells it; false: `info` is of something else.
struct Trap {
    unsigned long address;
    unsigned long data;
    bool late;  // SIGTRAP was blocked: the thread has gone on since
};
bool read(const siginfo_t* info, Trap* trap);

}  // namespace tachograph::trap_signal
