// Stacks of our own, for what runs in a signal handler: the program's may have room for little more
// than the kernel's frame.
#pragma once

#include <ucontext.h>

namespace tachograph::own_stack {

bool open();
// Calls function(argument) on a stack of ours. False, and nothing is called, if all are taken.
bool run(void (*function)(void*), void* argument);
// In a handler, on a stack of ours. The kernel takes the program's alternate stack for free now,
// though our own signal's frame may lie on it: a fault of a guarded read must not go there. The
// return from the handler puts it back.
void spare_alternate(const ucontext_t* interrupted);
// In a forked child: none is taken.
void forget();

}  // namespace tachograph::own_stack
