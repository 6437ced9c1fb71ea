// Calls of Python functions as the interpreter comes to evaluate their frames (PEP 523).
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// How a frame comes to be evaluated. Without a function that evaluates frames the interpreter goes
// on in the same evaluation loop where bytecode calls a Python function, and by version where it
// goes on with a generator, unpacks arguments, creates an object, or reads a property or an item:
// those lose by it, each as much as the C code takes that is in place of it. Calls by C code do
// not. On 3.12 and 3.13 `await` of a coroutine loses most: it calls the method `send`, and gets the
// coroutine's result from an exception.
enum tg_way {
    TG_BY_BYTECODE,
    TG_BY_C,
    TG_GENERATOR_BY_BYTECODE,
    TG_UNPACKED,
    TG_CONSTRUCTOR,
    TG_PROPERTY,
    TG_ITEM,
    TG_COROUTINE_BEGINS,   // by `await`, which it may end
    TG_COROUTINE_GOES_ON,  // in the same, after it was suspended
    TG_WAYS
};

enum tg_evaluated { TG_CALL_BEGINS, TG_CALL_GOES_ON, TG_NO_CALL };

// Up to 3.13: a function that evaluates frames (PEP 523), which reports every call of a Python
// function while it is in place. `frame` is the frame's own address.
struct tg_call_events {
    // A call begins or goes on, or it is none; nonzero if its end is to be reported.
    int (*begins)(void* code, const void* frame, int what, int way);
    void (*ends)(void* code, const void* frame, int suspended);
    // There would soon be no room on the stack: calls in calls take more of it.
    void (*stack_is_full)(void);
};
// Whether frames can be evaluated here.
extern const int tg_can_evaluate_frames;
// Before all else, with the GIL. `learns`: the way of the next calls; TG_WAYS: that is not known.
void tg_prepare_evaluation(const struct tg_call_events* events, enum tg_way learns);
// From now on, in the main interpreter; 0 if the program has such a function of its own. In any
// thread, with the GIL or without, and safe in a signal handler, as is the reverse.
int tg_evaluate_frames(void);
// Ends of calls that are open are reported all the same.
void tg_evaluate_no_frames(void);

#ifdef __cplusplus
}
#endif
