// Calls of Python functions as the interpreter comes to evaluate their frames (PEP 523).
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// Up to 3.11, where there is no sys.monitoring: a function that evaluates frames (PEP 523), which
// tells of every call of a Python function from there on. `frame` is the frame's own address.
struct tg_call_events {
    // A call begins or goes on; whether its end is to be told.
    int (*begins)(void* code, const void* frame, int goes_on);
    void (*ends)(void* code, const void* frame, int suspended);
    // There would soon be no room on the stack: calls in calls take more of it.
    void (*stack_is_full)(void);
};
// 0 if the program has such a function of its own.
int tg_tell_calls(const struct tg_call_events* events);
// Ends of calls that are open are told all the same.
void tg_tell_no_calls(void);

#ifdef __cplusplus
}
#endif
