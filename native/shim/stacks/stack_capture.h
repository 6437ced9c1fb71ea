// The calling thread's Python stack, read by itself.
#pragma once

#include "tachograph/api.h"

#include <cstdint>

namespace tachograph::stack_capture {

// As the walker's walk_self, with reads through the kernel where a fault would not reach our
// handler. Counts what went wrong.
void walk(bool fault_gets_through, tg_walk* found);

// The same from ordinary context, which may be anything: a signal handler of the program's, a
// thread that blocks every signal, a small stack.
void walk(tg_walk* found);

// Whether a fault of the calling thread would reach our handler, in ordinary context.
bool fault_gets_through();

// The address to be recorded for the caller of a hook of ours; 0 if that was another of our hooks,
// through which the call came from the interpreter.
uint64_t outside_caller(const void* caller);
// Whether a program counter is in this library.
bool is_ours(uint64_t pc);

}  // namespace tachograph::stack_capture
