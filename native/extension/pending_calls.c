// How CPython is made to run something of ours in its main thread.
#include "compat_internal.h"

int tg_add_pending_call(int (*function)(void*)) {
    if (Py_AddPendingCall(function, NULL) != 0) return -1;
#if PY_VERSION_HEX < 0x030D0000
    _Py_atomic_store_relaxed(&PyInterpreterState_Main()->ceval.eval_breaker, 1);
#endif
    return 0;
}

// The lock of the queue: another thread may have had it at a fork, and will not give it back.
static int pending_calls_are_free(void) {
#if PY_VERSION_HEX >= 0x030D0000
    return (_PyRuntime.ceval.pending_mainthread.mutex._bits & 1) == 0;
#else
#if PY_VERSION_HEX >= 0x030C0000
    const PyThread_type_lock lock = _PyRuntime.ceval.pending_mainthread.lock;
#else
    const PyThread_type_lock lock = PyInterpreterState_Main()->ceval.pending.lock;
#endif
    if (!lock || !PyThread_acquire_lock(lock, NOWAIT_LOCK)) return 0;
    PyThread_release_lock(lock);
    return 1;
#endif
}

int tg_add_pending_call_in_child(int (*function)(void*)) {
    const int runs = PyThread_get_thread_ident() == _PyRuntime.main_thread && !tg_is_finalizing();
    return runs && pending_calls_are_free() ? tg_add_pending_call(function) : -1;
}

#if PY_VERSION_HEX >= 0x030E0000
const struct tg_pending_calls* tg_pending_calls_of_runtime(void) { return NULL; }

static struct tg_remote_script remote_script = {
    .runtime_newest = offsetof(_PyRuntimeState, interpreters.head),
    .runtime_main = offsetof(_PyRuntimeState, interpreters.main),
    .breaker_bits = 1U << 5,  // _PY_EVAL_PLEASE_STOP_BIT
};
const struct tg_remote_script* tg_remote_script_of_runtime(void) {
    const _Py_DebugOffsets* published = &_PyRuntime.debug_offsets;
    if (memcmp(published->cookie, "xdebugpy", 8) != 0) return NULL;
    if (published->version != Py_Version) return NULL;
    const size_t support = published->debugger_support.remote_debugger_support;
    remote_script.enabled = published->debugger_support.remote_debugging_enabled;
    remote_script.main_thread = published->interpreter_state.threads_main;
    remote_script.breaker = published->debugger_support.eval_breaker;
    remote_script.pending = support + published->debugger_support.debugger_pending_call;
    remote_script.path = support + published->debugger_support.debugger_script_path;
    remote_script.path_size = published->debugger_support.debugger_script_path_size;
    return &remote_script;
}
#else
const struct tg_remote_script* tg_remote_script_of_runtime(void) { return NULL; }
static const struct tg_pending_calls pending_calls = {
    .runtime_initialized = offsetof(_PyRuntimeState, initialized),
    .runtime_main = offsetof(_PyRuntimeState, interpreters.main),
    .runtime_main_thread = offsetof(_PyRuntimeState, main_thread),
#if PY_VERSION_HEX >= 0x030C0000
    .queue = offsetof(_PyRuntimeState, ceval.pending_mainthread),
#else
    .in_interpreter = 1,
    .queue = offsetof(PyInterpreterState, ceval.pending),
#endif
#if PY_VERSION_HEX >= 0x030D0000
    .lock = offsetof(struct _pending_calls, mutex),
    .lock_size = sizeof(PyMutex),
    .to_do = offsetof(struct _pending_calls, npending),
    .count = PENDINGCALLSARRAYSIZE,
    .call_flags = offsetof(struct _pending_call, flags),
    .call_flag = _Py_PENDING_MAINTHREADONLY,
    .last = offsetof(struct _pending_calls, next),
    .runtime_main_tstate = offsetof(_PyRuntimeState, main_tstate),
    .breaker = offsetof(PyThreadState, eval_breaker),
    .breaker_bits = _PY_CALLS_TO_DO_BIT,
    .breaker_size = sizeof(uintptr_t),
#else
    .lock = offsetof(struct _pending_calls, lock),
    .lock_is_pointer = 1,
    .lock_size = 2 * sizeof(int),  // of the semaphore: its value, and how many wait for it
    .to_do = offsetof(struct _pending_calls, calls_to_do),
    .count = NPENDINGCALLS,
    .last = offsetof(struct _pending_calls, last),
    .breaker = offsetof(PyInterpreterState, ceval.eval_breaker),
    .breaker_bits = 1,
    .breaker_size = sizeof(int),
#endif
    .calls = offsetof(struct _pending_calls, calls),
    .call_size = sizeof(((struct _pending_calls*)0)->calls[0]),
    .call_argument = sizeof(void*),
    .first = offsetof(struct _pending_calls, first),
};
const struct tg_pending_calls* tg_pending_calls_of_runtime(void) { return &pending_calls; }
#endif
