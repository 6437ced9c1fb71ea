// Stacks of our own, for what runs in a signal handler: the program's may have room for little more
// than the kernel's frame.
#pragma once

namespace tachograph::own_stack {

bool open();
// Calls function(argument) on a stack of ours. False, and nothing is called, if all are taken.
bool run(void (*function)(void*), void* argument);
// In a forked child: none is taken.
void forget();

}  // namespace tachograph::own_stack
