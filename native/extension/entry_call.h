// What an entered process's main thread calls (entering.cpp): evaluates code, and what the
// program's handlers of signals raise meanwhile is raised in the program, where it would run such a
// handler. PyRun_SimpleString prints that instead, and loses it; and it compiles, during which
// signals come.
//
// The function is copied into the process as it is: its code refers to nothing but its argument.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// Functions of the interpreter, and data, where the process has them.
struct tg_entry_call_argument {
    PyObject* (*load)(const char*, Py_ssize_t);
    PyObject* (*new_dict)(void);
    PyObject* (*evaluate)(PyObject*, PyObject*, PyObject*);
    void (*release)(PyObject*);
    void (*clear_error)(void);
    int (*add_call)(int (*)(void*), void*);
    int (*matches)(PyObject*);
    PyObject** recursion_error;
    int (*again)(void*);  // the function itself
    const char* code;     // as marshal writes it
    Py_ssize_t size;
};

// 0; or -1 with an exception set, which is the program's.
int tg_entry_call(void* argument);

// Its code.
extern const char tg_entry_code_begins[] __asm__("__start_tachograph_entry")
    __attribute__((visibility("hidden")));
extern const char tg_entry_code_ends[] __asm__("__stop_tachograph_entry")
    __attribute__((visibility("hidden")));

#ifdef __cplusplus
}
#endif
