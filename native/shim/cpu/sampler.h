// The CPU sampler: what happens when a thread's CPU timer expires.
#pragma once

#include "stacks/threads.h"

#include <csignal>

namespace tachograph::sampler {

// The sampling signal's handler. Allocates nothing, takes no lock, calls nothing that could.
void on_timer(int signal, siginfo_t* info, void* context);

// Takes the calling thread's clocks as the beginning of its first sample.
void begin(threads::Thread* own);

}  // namespace tachograph::sampler
