// In C, as compat.c is: CPython's internal headers are C only.
#define Py_BUILD_CORE 1
#include "calls/frame_evaluation.h"

#include "compat.h"

#if PY_VERSION_HEX >= 0x030C0000
int tg_tell_calls(const struct tg_call_events* events) {
    (void)events;
    return 0;
}

void tg_tell_no_calls(void) {}
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <internal/pycore_frame.h>
#pragma GCC diagnostic pop
#include <opcode.h>
#include <pthread.h>

// A call that is told of takes so much of the stack, at most, where it takes nothing else.
#define TG_CALL_BYTES 1536
// The part of the stack that such calls may have: of a large one there is room for those of
// Python's own limit of recursion.
#define TG_LARGE_STACK (4 << 20)
#define TG_PART_OF_LARGE 5
#define TG_PART_OF_SMALL 16

static const struct tg_call_events* g_events;  // while calls are told of
static __thread unsigned t_open;               // calls that are told of and have not ended
static __thread unsigned t_most;               // that there may be; 0: not known yet

static unsigned most_calls(void) {
    pthread_attr_t attributes;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        void* lowest = NULL;
        if (pthread_attr_getstack(&attributes, &lowest, &size) != 0) size = 0;
        pthread_attr_destroy(&attributes);
    }
    const size_t part = size >= TG_LARGE_STACK ? TG_PART_OF_LARGE : TG_PART_OF_SMALL;
    const size_t most = size / part / TG_CALL_BYTES;
    return most < 1 ? 1 : most > 1024 ? 1024 : (unsigned)most;
}

static PyObject* evaluate(PyThreadState* tstate, _PyInterpreterFrame* frame, int thrown) {
    const struct tg_call_events* events = g_events;
    // Put back by one who had found it there.
    if (!events) tg_tell_no_calls();
    PyCodeObject* code = frame->f_code;
    const int owned = frame->owner == FRAME_OWNED_BY_GENERATOR;
    const int first = !owned || _Py_OPCODE(*frame->prev_instr) == RETURN_GENERATOR;
    // What makes a generator is no call of it yet, and one that is thrown into at first none at
    // all.
    if (!events || (!owned && tg_is_generator(code)) || (first && thrown))
        return _PyEval_EvalFrameDefault(tstate, frame, thrown);
    if (t_most == 0) t_most = most_calls();
    if (t_open >= t_most) {
        events->stack_is_full();
        return _PyEval_EvalFrameDefault(tstate, frame, thrown);
    }
    const int wanted = events->begins(code, frame, !first);
    ++t_open;
    PyObject* result = _PyEval_EvalFrameDefault(tstate, frame, thrown);
    --t_open;
    if (wanted) {
        const int suspended =
            owned && result && _PyFrame_GetGenerator(frame)->gi_frame_state == FRAME_SUSPENDED;
        events->ends(code, frame, suspended);
    }
    return result;
}

int tg_tell_calls(const struct tg_call_events* events) {
    PyInterpreterState* interpreter = PyInterpreterState_Get();
    const _PyFrameEvalFunction known = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    if (known != evaluate && known != _PyEval_EvalFrameDefault) return 0;
    g_events = events;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    return 1;
}

void tg_tell_no_calls(void) {
    PyInterpreterState* interpreter = PyInterpreterState_Get();
    g_events = NULL;
    if (_PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate)
        _PyInterpreterState_SetEvalFrameFunc(interpreter, _PyEval_EvalFrameDefault);
}
#endif
