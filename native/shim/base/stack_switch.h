// Calls a function on another stack, by code whose unwind rows lead back to the caller's: a path
// from there, in our unwinder, in a debugger's, does not end at the exchange of the stacks.
#pragma once

#include <cstdint>

namespace tachograph::stack_switch {

// Calls function(argument) with the stack that ends at `top`, a multiple of 16.
void call_on(void* top, void (*function)(void*), void* argument);

// Whether code at `pc` is in the middle of that: its frame's CFA may be on another stack.
bool holds(uint64_t pc);

}  // namespace tachograph::stack_switch
