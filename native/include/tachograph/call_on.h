// A call on another stack, in the processor's own instructions (arch/). Between the two places the
// other stack is in use.
#pragma once

extern "C" void tachograph_call_on(void* top, void (*function)(void*), void* argument);
extern "C" const char tachograph_call_on_other[];
extern "C" const char tachograph_call_on_back[];
