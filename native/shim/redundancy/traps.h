// What happens when a watched byte is accessed.
#pragma once

#include "redundancy/watchers.h"

#include <ucontext.h>
#include <csignal>
#include <cstdint>

namespace tachograph::redundancy {

// The handler of trap_signal.h: writes the pair, or waits for another access.
bool on_trap(siginfo_t* info, ucontext_t* context);

// Disarms those of the calling thread's watchpoints whose watch was ended by another thread.
void disarm_ended(Watcher* watcher);

// CPU ns that the handler has taken of the program's threads in this process.
int64_t traps_cost_ns();

}  // namespace tachograph::redundancy
