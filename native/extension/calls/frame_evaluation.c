// In C: CPython's internal headers are C only.
#include "compat_internal.h"

#include "calls/frame_evaluation.h"

#if PY_VERSION_HEX >= 0x030E0000
const int tg_can_evaluate_frames = 0;
void tg_prepare_evaluation(const struct tg_call_events* events, enum tg_way learns) {
    (void)events;
    (void)learns;
}
int tg_evaluate_frames(void) { return 0; }
void tg_evaluate_no_frames(void) {}
#else
#include <opcode.h>
#include <pthread.h>

// A call that is reported takes so much of the stack, at most, where it takes nothing else.
#define TG_CALL_BYTES 1536
// The part of the stack that such calls may have: of a large one there is room for those of
// Python's own limit of recursion.
#define TG_LARGE_STACK (4 << 20)
#define TG_PART_OF_LARGE 5
#define TG_PART_OF_SMALL 16
// By how much the place on the stack differs between ways of the same kind of call.
#define TG_SPREAD 64
// How many frames of one evaluation loop are looked through for its place.
#define TG_MOST_INLINED 8

const int tg_can_evaluate_frames = 1;

static const struct tg_call_events* g_events;
static PyInterpreterState* g_interpreter;
// By way: how far below the evaluation loop's own frame on the C stack the function is that
// evaluates its frames. The C code in between differs by way, and so does its part of the stack.
static enum tg_way g_learns = TG_WAYS;
static size_t g_reach[TG_WAYS];
struct reported {
    unsigned open;  // calls that are reported and have not ended
    unsigned most;  // that there may be; 0: not known yet
};
static __thread struct reported t_reported;

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

static int is_full(PyThreadState* tstate, struct reported* reported) {
    if (reported->most == 0) reported->most = most_calls();
#if PY_VERSION_HEX >= 0x030D0000
    if (tstate->c_recursion_remaining < Py_C_RECURSION_LIMIT / 2) return 1;
#elif PY_VERSION_HEX >= 0x030C0000
    if (tstate->c_recursion_remaining < C_RECURSION_LIMIT / 2) return 1;
#else
    (void)tstate;
#endif
    return reported->open >= reported->most;
}

static PyCodeObject* code_of(_PyInterpreterFrame* frame) {
#if PY_VERSION_HEX >= 0x030D0000
    return _PyFrame_GetCode(frame);
#else
    return frame->f_code;
#endif
}

// Whether a generator's frame has not begun to run its body.
static int is_new(_PyInterpreterFrame* frame) {
#if PY_VERSION_HEX >= 0x030D0000
    const _Py_CODEUNIT* first = _PyCode_CODE(code_of(frame));
    const _Py_CODEUNIT* next = frame->instr_ptr;
    return next->op.code == RETURN_GENERATOR ||
           (next > first && next[-1].op.code == RETURN_GENERATOR);
#elif PY_VERSION_HEX >= 0x030C0000
    return frame->prev_instr->op.code == RETURN_GENERATOR;
#else
    return _Py_OPCODE(*frame->prev_instr) == RETURN_GENERATOR;
#endif
}

static int is_suspended(_PyInterpreterFrame* frame) {
    const int8_t state = _PyFrame_GetGenerator(frame)->gi_frame_state;
#if PY_VERSION_HEX >= 0x030D0000
    return state == FRAME_SUSPENDED || state == FRAME_SUSPENDED_YIELD_FROM;
#else
    return state == FRAME_SUSPENDED;
#endif
}

// How far `here` is below the evaluation loop that the thread is in; SIZE_MAX if it is in none, 0
// if that is not known.
static size_t reach(PyThreadState* tstate, const char* here) {
#if PY_VERSION_HEX >= 0x030D0000
    // Each evaluation loop has a frame of its own on the C stack, below those that it runs.
    const _PyInterpreterFrame* frame = tstate->current_frame;
    for (int i = 0; frame && i <= TG_MOST_INLINED; ++i, frame = frame->previous)
        if (frame->owner == FRAME_OWNED_BY_CSTACK) return (size_t)((const char*)frame - here);
    return frame ? 0 : SIZE_MAX;
#else
    return (size_t)((const char*)tstate->cframe - here);
#endif
}

static _PyInterpreterFrame* caller_of(PyThreadState* tstate) {
#if PY_VERSION_HEX >= 0x030D0000
    return tstate->current_frame;
#else
    return tstate->cframe->current_frame;
#endif
}

static int running_opcode(const _PyInterpreterFrame* frame) {
#if PY_VERSION_HEX >= 0x030D0000
    return _Py_OPCODE(*frame->instr_ptr);
#else
    return _Py_OPCODE(*frame->prev_instr);
#endif
}

// The way of calls by what the caller's bytecode does, if no C code is in between.
static enum tg_way way_by_code(const _PyInterpreterFrame* caller) {
    switch (running_opcode(caller)) {
        case CALL_FUNCTION_EX:
            return TG_UNPACKED;
        case LOAD_ATTR:
#ifdef LOAD_ATTR_PROPERTY
        case LOAD_ATTR_PROPERTY:
#endif
            return TG_PROPERTY;
        case BINARY_SUBSCR:
        case BINARY_SUBSCR_GETITEM:
#ifdef BINARY_SUBSCR_ADAPTIVE
        case BINARY_SUBSCR_ADAPTIVE:
#endif
            return TG_ITEM;
        default:
            return TG_BY_BYTECODE;
    }
}

// The same of frames that belong to a generator or a coroutine.
static enum tg_way way_of_owned(const _PyInterpreterFrame* caller, const PyCodeObject* code,
                                int begins) {
#if PY_VERSION_HEX >= 0x030C0000
    const int opcode = running_opcode(caller);
    if ((code->co_flags & CO_COROUTINE) && (opcode == SEND || opcode == SEND_GEN))
        return begins ? TG_COROUTINE_BEGINS : TG_COROUTINE_GOES_ON;
#else
    (void)caller, (void)code, (void)begins;
#endif
    return TG_GENERATOR_BY_BYTECODE;
}

static int is_near(size_t far, enum tg_way way) {
    const size_t learned = g_reach[way];
    return learned > 0 && far + TG_SPREAD >= learned && far <= learned + TG_SPREAD;
}

static enum tg_way way_of(PyThreadState* tstate, const PyCodeObject* code, int owned, int begins) {
    const size_t far = reach(tstate, __builtin_frame_address(0));
    if (g_learns != TG_WAYS && far != SIZE_MAX) g_reach[g_learns] = far;
    // A thread's first frame has no caller.
    const _PyInterpreterFrame* caller = caller_of(tstate);
    if (far == SIZE_MAX || !caller) return TG_BY_C;
    const enum tg_way way = owned ? way_of_owned(caller, code, begins) : way_by_code(caller);
    // A coroutine goes on as it began.
    const enum tg_way learned = way == TG_COROUTINE_GOES_ON ? TG_COROUTINE_BEGINS : way;
    if (far == 0 || is_near(far, learned)) return way;
    return way == TG_BY_BYTECODE && is_near(far, TG_CONSTRUCTOR) ? TG_CONSTRUCTOR : TG_BY_C;
}

static PyObject* evaluate(PyThreadState* tstate, _PyInterpreterFrame* frame, int thrown) {
    const struct tg_call_events* events = g_events;
    PyCodeObject* code = code_of(frame);
    const int owned = frame->owner == FRAME_OWNED_BY_GENERATOR;
    const int first = !owned || is_new(frame);
    // What makes a generator is no call of it yet, and one that is thrown into at first none at
    // all.
    const int none = (!owned && tg_is_generator(code)) || (first && thrown);
    // Where it is takes a call to find out. The compiler would rather call again than keep it.
    struct reported* reported = &t_reported;
    __asm__("" : "+r"(reported));
    if (is_full(tstate, reported)) {
        events->stack_is_full();
        return _PyEval_EvalFrameDefault(tstate, frame, thrown);
    }
    const int what = none ? TG_NO_CALL : first ? TG_CALL_BEGINS : TG_CALL_GOES_ON;
    const enum tg_way way = way_of(tstate, code, owned, what == TG_CALL_BEGINS);
    const int wanted = events->begins(code, frame, what, way);
    ++reported->open;
    PyObject* result = _PyEval_EvalFrameDefault(tstate, frame, thrown);
    --reported->open;
    if (wanted) events->ends(code, frame, owned && result && is_suspended(frame));
    return result;
}

void tg_prepare_evaluation(const struct tg_call_events* events, enum tg_way learns) {
    g_events = events;
    g_interpreter = PyInterpreterState_Main();
    g_learns = learns;
}

// As _PyInterpreterState_SetEvalFrameFunc, which from 3.13 on stops all threads meanwhile, for
// builds without the GIL: one pointer is written, that the interpreter reads at each call.
int tg_evaluate_frames(void) {
    _PyFrameEvalFunction none = NULL;
    return __atomic_compare_exchange_n(&g_interpreter->eval_frame, &none, evaluate, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
           none == evaluate;
}

void tg_evaluate_no_frames(void) {
    if (!g_interpreter) return;
    _PyFrameEvalFunction ours = evaluate;
    __atomic_compare_exchange_n(&g_interpreter->eval_frame, &ours, NULL, 0, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
}
#endif
