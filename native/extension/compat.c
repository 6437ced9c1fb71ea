// Compiled per CPython version, in C, because CPython's internal headers are C only.
#include "compat_internal.h"

#include <pthread.h>
#include <unistd.h>

// TaskObj has no header (Modules/_asynciomodule.c). A patch release that moves its fields costs the
// names of tasks and no more: what is found there must be the coroutine that runs.
#if PY_VERSION_HEX >= 0x030E0000
#define TG_TASK_COROUTINE 128
#elif PY_VERSION_HEX >= 0x030D0000
#define TG_TASK_COROUTINE 120
#else
#define TG_TASK_COROUTINE 136
#endif
#if PY_VERSION_HEX >= 0x030C0000
#define TG_LONG_DIGITS long_value.ob_digit
#else
#define TG_LONG_DIGITS ob_digit
#endif
// What a task awaits is the field before its coroutine. FutureObj has its loop first, then this
// one.
#define TG_FUTURE_CALLBACK (sizeof(PyObject) + sizeof(void*))
#if PY_VERSION_HEX >= 0x030C0000
#define TG_MODULES imports.modules
#else
#define TG_MODULES modules
#endif

static struct tg_offsets offsets = {
    .tstate_next = offsetof(PyThreadState, next),
    .tstate_native_thread_id = offsetof(PyThreadState, native_thread_id),
#if PY_VERSION_HEX >= 0x030D0000
    .tstate_frame = offsetof(PyThreadState, current_frame),
#else
    .tstate_frame = offsetof(PyThreadState, cframe),
    .frame_in_cframe = 1,
    .cframe_frame = offsetof(_PyCFrame, current_frame),
    .cframe_previous = offsetof(_PyCFrame, previous),
    .instruction_is_previous = 1,
#endif
    .tstate_chunk = offsetof(PyThreadState, datastack_chunk),
    .tstate_context = offsetof(PyThreadState, context),
    .chunk_previous = offsetof(_PyStackChunk, previous),
    .chunk_size = offsetof(_PyStackChunk, size),
    .interpreter_next = offsetof(PyInterpreterState, next),
    .interpreter_threads = offsetof(PyInterpreterState, threads.head),
    .runtime_interpreters = offsetof(_PyRuntimeState, interpreters.head),
#if PY_VERSION_HEX >= 0x030C0000
    .interpreter_gil = offsetof(PyInterpreterState, ceval.gil),
#else
    .runtime_gil = offsetof(_PyRuntimeState, ceval.gil),
#endif
    .gil_size = sizeof(struct _gil_runtime_state),
    .interpreter_collecting = offsetof(PyInterpreterState, gc.collecting),
#if PY_VERSION_HEX >= 0x030E0000
    .tstate_task = offsetof(_PyThreadStateImpl, asyncio_running_task),
#endif
    .tstate_interpreter = offsetof(PyThreadState, interp),
    .interpreter_modules = offsetof(PyInterpreterState, TG_MODULES),
    .runtime_main = offsetof(_PyRuntimeState, interpreters.main),
    .module_dict = offsetof(PyModuleObject, md_dict),
    .task_coroutine = TG_TASK_COROUTINE,
    .coroutine_frame = offsetof(PyCoroObject, cr_iframe),
    .context_variables = offsetof(PyContext, ctx_vars),
    .variables_root = offsetof(PyHamtObject, h_root),
    .dict_keys = offsetof(PyDictObject, ma_keys),
    .dict_values = offsetof(PyDictObject, ma_values),
    .keys_log2_index_bytes = offsetof(PyDictKeysObject, dk_log2_index_bytes),
    .keys_kind = offsetof(PyDictKeysObject, dk_kind),
    .keys_count = offsetof(PyDictKeysObject, dk_nentries),
    .keys_indices = offsetof(PyDictKeysObject, dk_indices),
    .frame_size = offsetof(_PyInterpreterFrame, owner) + 1,
    .frame_code = offsetof(_PyInterpreterFrame, TG_FRAME_CODE),
    .frame_globals = offsetof(_PyInterpreterFrame, f_globals),
    .frame_previous = offsetof(_PyInterpreterFrame, previous),
    .frame_instruction = offsetof(_PyInterpreterFrame, TG_FRAME_INSTRUCTION),
    .frame_owner = offsetof(_PyInterpreterFrame, owner),
#if PY_VERSION_HEX >= 0x030E0000
    .code_tag_mask = 7,
#endif
    .owner_generator = FRAME_OWNED_BY_GENERATOR,
#if PY_VERSION_HEX >= 0x030E0000
    .owner_shim_first = FRAME_OWNED_BY_INTERPRETER,
    .owner_shim_last = FRAME_OWNED_BY_INTERPRETER + 1,  // 3.14's CSTACK
#elif PY_VERSION_HEX >= 0x030C0000
    .owner_shim_first = FRAME_OWNED_BY_CSTACK,
    .owner_shim_last = FRAME_OWNED_BY_CSTACK,
#else
    .owner_shim_first = TG_NO_SHIMS,
    .owner_shim_last = TG_NO_SHIMS,
#endif
    .code_flags = offsetof(PyCodeObject, co_flags),
    .code_first_line = offsetof(PyCodeObject, co_firstlineno),
    .code_filename = offsetof(PyCodeObject, co_filename),
    .code_qualname = offsetof(PyCodeObject, co_qualname),
    .code_line_table = offsetof(PyCodeObject, co_linetable),
    .code_units = offsetof(PyVarObject, ob_size),
    .code_instructions = offsetof(PyCodeObject, co_code_adaptive),
#if PY_VERSION_HEX >= 0x030C0000
    .code_deaths_told = 1,
#endif
    .bytes_size = offsetof(PyVarObject, ob_size),
    .bytes_data = offsetof(PyBytesObject, ob_sval),
    .object_type = offsetof(PyObject, ob_type),
    .type_name = offsetof(PyTypeObject, tp_name),
    .type_flags = offsetof(PyTypeObject, tp_flags),
    .type_flag = Py_TPFLAGS_TYPE_SUBCLASS,
    .type_base = offsetof(PyTypeObject, tp_base),
    .type_dict = offsetof(PyTypeObject, tp_dict),
    .type_keys = offsetof(PyHeapTypeObject, ht_cached_keys),
    .future_callback = TG_FUTURE_CALLBACK,
    .generator_state = offsetof(PyGenObject, gi_frame_state),
    .suspended_first = FRAME_SUSPENDED,
    .suspended_end = FRAME_EXECUTING,
#if PY_VERSION_HEX >= 0x030D0000
    .awaits = FRAME_SUSPENDED_YIELD_FROM,
#else
    .awaits = TG_NO_STATE,
#endif
#if PY_VERSION_HEX >= 0x030E0000
    .frame_values_end = offsetof(_PyInterpreterFrame, stackpointer),
    .value_tag_mask = 3,
#else
    .frame_values = offsetof(_PyInterpreterFrame, localsplus),
    .frame_values_end = offsetof(_PyInterpreterFrame, stacktop),
#endif
    .set_used = offsetof(PySetObject, used),
    .set_mask = offsetof(PySetObject, mask),
    .set_table = offsetof(PySetObject, table),
    .reference_target = offsetof(PyWeakReference, wr_object),
    .builtin_self = offsetof(PyCFunctionObject, m_self),
    .function_closure = offsetof(PyFunctionObject, func_closure),
    .cell_value = offsetof(PyCellObject, ob_ref),
    .method_self = offsetof(PyMethodObject, im_self),
    .tuple_size = offsetof(PyVarObject, ob_size),
    .tuple_items = offsetof(PyTupleObject, ob_item),
#if PY_VERSION_HEX >= 0x030E0000
    .tstate_tasks = offsetof(_PyThreadStateImpl, asyncio_tasks_head),
    .interpreter_tasks = offsetof(PyInterpreterState, asyncio_tasks_head),
    .task_node = TG_TASK_COROUTINE + 3 * sizeof(void*),
#elif PY_VERSION_HEX >= 0x030C0000
    .all_tasks = "_scheduled_tasks",
#else
    .all_tasks = "_all_tasks",
#endif
};

const struct tg_offsets* tg_offsets_of_runtime(void) {
#if PY_VERSION_HEX >= 0x030D0000
    // A later patch release may have moved a field; it says so itself.
    const _Py_DebugOffsets* published = &_PyRuntime.debug_offsets;
    if (memcmp(published->cookie, "xdebugpy", 8) != 0 || published->free_threaded) return NULL;
    if ((published->version ^ (uint64_t)PY_VERSION_HEX) >> 16) return NULL;
    offsets.tstate_next = published->thread_state.next;
    offsets.tstate_native_thread_id = published->thread_state.native_thread_id;
    offsets.tstate_frame = published->thread_state.current_frame;
    offsets.interpreter_next = published->interpreter_state.next;
    offsets.interpreter_threads = published->interpreter_state.threads_head;
    offsets.runtime_interpreters = published->runtime_state.interpreters_head;
    offsets.interpreter_modules = published->interpreter_state.imports_modules;
    offsets.tstate_interpreter = published->thread_state.interp;
    offsets.interpreter_gil = published->interpreter_state.ceval_gil;
    offsets.interpreter_collecting = published->interpreter_state.gc + published->gc.collecting;
#if PY_VERSION_HEX >= 0x030E0000
    offsets.coroutine_frame = published->gen_object.gi_iframe;
#endif
    offsets.frame_code = published->interpreter_frame.executable;
    offsets.frame_previous = published->interpreter_frame.previous;
    offsets.frame_instruction = published->interpreter_frame.instr_ptr;
    offsets.frame_owner = published->interpreter_frame.owner;
    offsets.frame_size = offsets.frame_owner + 1;
    offsets.code_first_line = published->code_object.firstlineno;
    offsets.code_filename = published->code_object.filename;
    offsets.code_qualname = published->code_object.qualname;
    offsets.code_line_table = published->code_object.linetable;
    offsets.code_instructions = published->code_object.co_code_adaptive;
#else
    if ((Py_Version ^ PY_VERSION_HEX) >> 16) return NULL;
#endif
    return &offsets;
}

const size_t tg_unicode_header = sizeof(PyASCIIObject);

int tg_unicode_shape_of(const void* header, struct tg_unicode_shape* shape) {
    PyASCIIObject copy;
    memcpy(&copy, header, sizeof copy);
    if (!copy.state.compact || copy.length < 0) return 0;
    shape->length = (size_t)copy.length;
    shape->width = copy.state.kind;
    shape->hash = copy.hash;
    shape->data = copy.state.ascii ? sizeof(PyASCIIObject) : sizeof(PyCompactUnicodeObject);
    return shape->width == 1 || shape->width == 2 || shape->width == 4;
}

int tg_small_number(const uint8_t* object, int (*read)(void* to, const void* from, size_t size),
                    uint32_t* value) {
    PyLongObject copy;
    digit digits[2] = {0, 0};
    // An int of one digit may lie at the end of what can be read.
    if (!read(&copy, object, offsetof(PyLongObject, TG_LONG_DIGITS)) ||
        Py_TYPE(&copy) != &PyLong_Type)
        return 0;
#if PY_VERSION_HEX >= 0x030C0000
    const uintptr_t count = copy.long_value.lv_tag >> 3;
    if ((copy.long_value.lv_tag & 3) == 2) return 0;  // negative
#else
    const Py_ssize_t count = Py_SIZE(&copy);
    if (count < 0) return 0;
#endif
    if (count > 2 || !read(digits, object + offsetof(PyLongObject, TG_LONG_DIGITS),
                           (size_t)count * sizeof(digit)))
        return 0;
    const uint64_t number = digits[0] | (uint64_t)digits[1] << PyLong_SHIFT;
    *value = (uint32_t)number;
    return number <= UINT32_MAX;
}

#if PY_VERSION_HEX < 0x030C0000
// 3.11 has them in obmalloc.c alone: 16 KiB pools in 1 MiB arenas, the size class the sixth field.
#define POOL_SIZE (1 << 14)
#define ARENA_SIZE (1 << 20)
#define TG_CLASS_OFFSET 36
#else
#define TG_CLASS_OFFSET offsetof(struct pool_header, szidx)
#endif
const struct tg_pools tg_small_blocks = {
    .pool_size = POOL_SIZE,
    .class_offset = TG_CLASS_OFFSET,
    .unit = 16,
    .classes = 32,
    .arena_size = ARENA_SIZE,
};

const void* tg_runtime(void) { return &_PyRuntime; }

#if PY_VERSION_HEX >= 0x030C0000
static void (*on_code_death)(const void* code);

static int on_code_event(PyCodeEvent event, PyCodeObject* code) {
    if (event == PY_CODE_EVENT_DESTROY) on_code_death(code);
    return 0;
}

static int code_watcher = -1;

void tg_watch_code_deaths(void (*died)(const void* code)) {
    on_code_death = died;
    if (code_watcher >= 0) return;
    code_watcher = PyCode_AddWatcher(on_code_event);
    if (code_watcher < 0) PyErr_Clear();
}

void tg_unwatch_code_deaths(void) {
    if (code_watcher >= 0 && PyCode_ClearWatcher(code_watcher) < 0) PyErr_Clear();
    code_watcher = -1;
}

PyObject* tg_local_variable(PyFrameObject* frame, const char* name) {
    return PyFrame_GetVarString(frame, name);
}
#else
void tg_watch_code_deaths(void (*died)(const void* code)) { (void)died; }
void tg_unwatch_code_deaths(void) {}

PyObject* tg_local_variable(PyFrameObject* frame, const char* name) {
    PyObject* locals = PyFrame_GetLocals(frame);
    if (!locals) return NULL;
    PyObject* value = PyMapping_GetItemString(locals, name);
    Py_DECREF(locals);
    return value;
}
#endif

#if PY_VERSION_HEX >= 0x030D0000
const int tg_counts_threads_after_fork_functions = 1;
#else
const int tg_counts_threads_after_fork_functions = 0;
#endif

#if PY_VERSION_HEX >= 0x030C0000
const int tg_counts_threads = 1;
#else
const int tg_counts_threads = 0;
#endif

int tg_is_finalizing(void) {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

enum { kShortSwitchUs = 101, kUsualSwitchUs = 5000 };  // programs do not set the first one

// NULL after the interpreter's end.
static unsigned long* switch_interval(void) {
#if PY_VERSION_HEX >= 0x030C0000
    const PyInterpreterState* interpreter = PyInterpreterState_Main();
    struct _gil_runtime_state* gil = interpreter ? interpreter->ceval.gil : NULL;
    return gil ? &gil->interval : NULL;
#else
    return &_PyRuntime.ceval.gil.interval;
#endif
}

unsigned long tg_switch_interval(void) {
    const unsigned long* interval = switch_interval();
    const unsigned long us = interval ? __atomic_load_n(interval, __ATOMIC_RELAXED) : 0;
    return us == kShortSwitchUs ? 0 : us;
}

unsigned long tg_shorten_switch_interval(void) {
    unsigned long* interval = switch_interval();
    if (!interval) return 0;
    unsigned long before = __atomic_load_n(interval, __ATOMIC_RELAXED);
    while (before > kShortSwitchUs &&
           !__atomic_compare_exchange_n(interval, &before, kShortSwitchUs, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return before > kShortSwitchUs ? before : 0;
}

void tg_restore_switch_interval(unsigned long before) {
    unsigned long* interval = switch_interval();
    unsigned long ours = kShortSwitchUs;
    if (interval && before)
        __atomic_compare_exchange_n(interval, &ours, before, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void tg_restore_switch_interval_in_child(unsigned long known) {
    tg_restore_switch_interval(known ? known : kUsualSwitchUs);
}

static void sleep_for_good(void* unused) {
    (void)unused;
    for (;;) pause();
}

void tg_restore_thread(PyThreadState* state) {
    pthread_cleanup_push(sleep_for_good, NULL);
    PyEval_RestoreThread(state);
    pthread_cleanup_pop(0);
}

const void* tg_evaluation_loop(void) {
    const void* address;
    PyObject* (*function)(PyThreadState*, struct _PyInterpreterFrame*, int) =
        _PyEval_EvalFrameDefault;
    memcpy(&address, &function, sizeof address);  // ISO C has no cast between the two
    return address;
}

const void* tg_own_frame(void) {
    PyThreadState* tstate = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030D0000
    return tstate->current_frame;
#else
    return tstate->cframe->current_frame;
#endif
}

#if PY_VERSION_HEX >= 0x030C0000
#define TG_REQUEST_EXTRA PyUnstable_Eval_RequestCodeExtraIndex
#define TG_GET_EXTRA PyUnstable_Code_GetExtra
#define TG_SET_EXTRA PyUnstable_Code_SetExtra
#else
#define TG_REQUEST_EXTRA _PyEval_RequestCodeExtraIndex
#define TG_GET_EXTRA _PyCode_GetExtra
#define TG_SET_EXTRA _PyCode_SetExtra
#endif

int tg_request_code_extra(void (*freed)(void* extra)) { return (int)TG_REQUEST_EXTRA(freed); }

void* tg_code_extra(void* code, int index) {
    void* extra = NULL;
    return TG_GET_EXTRA(code, index, &extra) == 0 ? extra : NULL;
}

int tg_set_code_extra(void* code, int index, void* extra) {
    // A code object's array has room for all users that there are, and when it is freed each has
    // its function called, also for what it never set: a user may not be prepared for that. So
    // there is room for those until ours alone; it grows when another sets something.
    PyInterpreterState* interpreter = PyInterpreterState_Get();
    const Py_ssize_t users = interpreter->co_extra_user_count;
    interpreter->co_extra_user_count = index + 1;
    const int done = TG_SET_EXTRA(code, index, extra) == 0;
    interpreter->co_extra_user_count = users;
    if (!done) PyErr_Clear();
    return done;
}

int tg_is_function(const void* code) {
    return (((const PyCodeObject*)code)->co_flags & CO_OPTIMIZED) != 0;
}

int tg_is_inlined_unseen(const void* code) {
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    return PyUnicode_CompareWithASCIIString(((const PyCodeObject*)code)->co_name, "__init__") == 0;
#else
    (void)code;
    return 0;
#endif
}

int tg_is_generator(const void* code) {
    const int kinds = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    return (((const PyCodeObject*)code)->co_flags & kinds) != 0;
}

const int tg_has_monitoring = PY_VERSION_HEX >= 0x030C0000;

int tg_resumes_await(uint8_t opcode, uint8_t argument) {
#if PY_VERSION_HEX >= 0x030D0000
    (void)opcode;
    (void)argument;
    return 0;
#else
    // The argument of RESUME: 2 after `yield from`, 3 after `await`; bit 2 is for other uses.
    const int resumes = opcode == RESUME
#if PY_VERSION_HEX >= 0x030C0000
                        || opcode == INSTRUMENTED_RESUME
#else
                        || opcode == RESUME_QUICK
#endif
        ;
    return resumes && (argument & 3) >= 2;
#endif
}
