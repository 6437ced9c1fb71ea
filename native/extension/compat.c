// Compiled per CPython version, in C, because CPython's internal headers are C only.
#define Py_BUILD_CORE 1
#include <Python.h>

#include <dlfcn.h>
#include <link.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x03100000
#error "not a CPython that tachograph records (recorder/command/support.py)"
#endif
#ifdef Py_GIL_DISABLED
#error "tachograph does not record free-threaded builds"
#endif

// Some internal headers compare signs and leave parameters unused.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_moduleobject.h>
#include <internal/pycore_object.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_pystate.h>
#endif
#if PY_VERSION_HEX < 0x030D0000
#include <opcode.h>
#endif
#if PY_VERSION_HEX >= 0x030C0000
#include <internal/pycore_obmalloc.h>
#endif
#if PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#include <internal/pycore_ceval.h>
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe_structs.h>
#endif
#pragma GCC diagnostic pop

#include "compat.h"
#include "tachograph/api.h"

#if PY_VERSION_HEX >= 0x030D0000
#define TG_ATTACHED PyThreadState_GetUnchecked
#define TG_FRAME_CODE f_executable
#define TG_FRAME_INSTRUCTION instr_ptr
#else
#define TG_ATTACHED _PyThreadState_UncheckedGet
#define TG_FRAME_CODE f_code
#define TG_FRAME_INSTRUCTION prev_instr
#endif

// TaskObj has no header (Modules/_asynciomodule.c). A patch release that moves its fields costs the
// names of tasks and no more: what is found there must be the coroutine that runs.
#if PY_VERSION_HEX >= 0x030E0000
#define TG_TASK_COROUTINE 128
#elif PY_VERSION_HEX >= 0x030D0000
#define TG_TASK_COROUTINE 120
#else
#define TG_TASK_COROUTINE 136
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
// Since 3.12 the attached thread state is a thread-local variable, since 3.15 the GIL state's too.
// The interpreter's own functions for them may call __tls_get_addr, which allocates and locks; so
// they are read from where they lie: an offset from the thread pointer, or, of a library that was
// loaded late, from the block that the thread has for it.
struct place {
    int known;
    ptrdiff_t at;
};
static struct place current_at;
static struct place gilstate_at;
static size_t late_module;  // the loader's number of a library that was loaded late, else 0
static int (*read_guarded)(void* to, const void* from, size_t size);

static char* thread_pointer(void) {
    char* pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

// A thread's blocks by module, as glibc keeps them (sysdeps/generic/dl-dtv.h). The one before the
// first says how many there are.
struct slot {
    uintptr_t value;
    void* to_free;
};

// The block of the library that was loaded late; NULL if this thread has none yet, and so has not
// been in the interpreter. Guarded: the loader may be exchanging the table just now.
static char* late_block(void) {
    const uintptr_t unallocated = UINTPTR_MAX;
    const struct slot* slots = *(const struct slot**)(void*)(thread_pointer() + sizeof(void*));
    struct slot slot;
    if (!read_guarded(&slot, slots - 1, sizeof slot) || late_module > slot.value) return NULL;
    if (!read_guarded(&slot, slots + late_module, sizeof slot)) return NULL;
    return slot.value == unallocated ? NULL : (char*)slot.value;
}

static PyThreadState* thread_local_at(struct place place) {
    PyThreadState* found = NULL;
    if (!place.known) return NULL;
    if (!late_module) return *(PyThreadState**)(void*)(thread_pointer() + place.at);
    const char* block = late_block();
    return block && read_guarded(&found, block + place.at, sizeof found) ? found : NULL;
}

struct block {
    char* data;  // the calling thread's thread-local variables of the interpreter's library
    size_t size;
    size_t module;
};

static int find_block(struct dl_phdr_info* info, size_t size, void* context) {
    struct block* block = context;
    const ElfW(Phdr)* locals = NULL;
    int ours = 0;
    if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data) return 1;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)* part = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (uintptr_t)&_PyRuntime - start < part->p_memsz) ours = 1;
        if (part->p_type == PT_TLS) locals = part;
    }
    if (!ours) return 0;
    if (locals && info->dlpi_tls_data)
        *block = (struct block){info->dlpi_tls_data, locals->p_memsz, info->dlpi_tls_modid};
    return 1;
}

// Whether every thread has it at the same offset: not so where the library was loaded late.
static int is_static(const char* data) {
    void (*sizes)(size_t*, size_t*);
    void* symbol = dlsym(RTLD_DEFAULT, "_dl_get_tls_static_info");
    size_t size = 0;
    size_t alignment = 0;
    if (!symbol) return 0;
    memcpy(&sizes, &symbol, sizeof sizes);
    sizes(&size, &alignment);
    return (size_t)(thread_pointer() - data) <= size;
}

void tg_find_thread_locals(int (*read)(void* to, const void* from, size_t size)) {
    enum { most = 64 };
    ptrdiff_t found[most];
    size_t count = 0;
    struct block block = {NULL, 0, 0};
    const PyThreadState* attached = TG_ATTACHED();
    current_at = gilstate_at = (struct place){0, 0};
    read_guarded = read;
    dl_iterate_phdr(find_block, &block);
    if (!block.data) return;
    late_module = is_static(block.data) ? 0 : block.module;
    // The loader's table may be another one than we know.
    if (late_module && late_block() != block.data) return;
    const char* base = late_module ? block.data : thread_pointer();
    for (char* at = block.data; at + sizeof attached <= block.data + block.size && count < most;
         at += sizeof attached)
        if (*(PyThreadState**)(void*)at == attached) found[count++] = at - base;
    // The one that is empty while the thread is detached. One alone, or none is taken.
    PyThreadState* saved = PyEval_SaveThread();
    size_t emptied = 0;
    for (size_t i = 0; i < count; ++i) {
        const struct place place = {1, found[i]};
        const PyThreadState* now = thread_local_at(place);
        if (!now && emptied++ == 0) current_at = place;
        if (now == attached) gilstate_at = place;
    }
    if (emptied != 1) current_at.known = 0;
    PyEval_RestoreThread(saved);
}

static PyThreadState* gilstate(void) {
#if PY_VERSION_HEX >= 0x030F0000
    return thread_local_at(gilstate_at);
#else
    return PyGILState_GetThisThreadState();  // of pthread_getspecific
#endif
}

int tg_own_thread_state_is_found(void) {
#if PY_VERSION_HEX >= 0x030F0000
    return gilstate_at.known;
#else
    return 1;
#endif
}

void* tg_own_thread_state(int* attached) {
    // Right in subinterpreters too, where the GILState one may not be.
    PyThreadState* current = thread_local_at(current_at);
    PyThreadState* own = current ? current : gilstate();
    *attached = current || (!current_at.known && own && own->_status.active);
    return own;
}

void* tg_running_thread_state(void) { return NULL; }
#else
void tg_find_thread_locals(int (*read)(void* to, const void* from, size_t size)) { (void)read; }

int tg_own_thread_state_is_found(void) { return 1; }

void* tg_own_thread_state(int* attached) {
    PyThreadState* own = PyGILState_GetThisThreadState();
    *attached = own && own == TG_ATTACHED();
    return own;
}

void* tg_running_thread_state(void) { return TG_ATTACHED(); }
#endif

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

const void* tg_evaluation_loop(void) {
    const void* address;
    PyObject* (*function)(PyThreadState*, struct _PyInterpreterFrame*, int) =
        _PyEval_EvalFrameDefault;
    memcpy(&address, &function, sizeof address);  // ISO C has no cast between the two
    return address;
}

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

#if PY_VERSION_HEX >= 0x030E0000
// The lowest bits of a reference are tags; with both set it is a number and no object.
#define TG_OBJECT(reference) \
    (((reference).bits & 3) == 3 ? NULL : (PyObject*)((reference).bits & ~(uintptr_t)3))
#else
#define TG_OBJECT(reference) (reference)
#endif

void tg_visit_locals(PyThreadState* tstate, tg_visit_local visit, void* context) {
#if PY_VERSION_HEX >= 0x030D0000
    const struct _PyInterpreterFrame* frame = tstate->current_frame;
#else
    const struct _PyInterpreterFrame* frame = tstate->cframe->current_frame;
#endif
    for (; frame; frame = frame->previous) {
#if PY_VERSION_HEX >= 0x030E0000
        PyObject* code = TG_OBJECT(frame->f_executable);
#else
        PyObject* code = (PyObject*)frame->TG_FRAME_CODE;
#endif
        if (!code || !PyCode_Check(code)) continue;
        const int variables = ((PyCodeObject*)code)->co_nlocalsplus;
        for (int i = 0; i < variables; ++i) {
            PyObject* value = TG_OBJECT(frame->localsplus[i]);
            if (value && visit(value, code, i, context) != 0) return;
        }
    }
}

PyObject* tg_name_of_local(PyObject* code, int variable) {
    PyObject* names = ((PyCodeObject*)code)->co_localsplusnames;
    return variable < PyTuple_GET_SIZE(names) ? PyTuple_GET_ITEM(names, variable) : NULL;
}

PyObject* tg_inline_attribute(PyObject* owner, PyObject* value) {
    PyTypeObject* type = Py_TYPE(owner);
    PyDictValues* values = NULL;
#if PY_VERSION_HEX >= 0x030D0000
    if ((type->tp_flags & Py_TPFLAGS_INLINE_VALUES) && _PyObject_InlineValues(owner)->valid)
        values = _PyObject_InlineValues(owner);
#elif PY_VERSION_HEX >= 0x030C0000
    if ((type->tp_flags & Py_TPFLAGS_MANAGED_DICT) &&
        _PyDictOrValues_IsValues(*_PyObject_DictOrValuesPointer(owner)))
        values = _PyDictOrValues_GetValues(*_PyObject_DictOrValuesPointer(owner));
#else
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) values = *_PyObject_ValuesPointer(owner);
#endif
    const PyDictKeysObject* keys = ((PyHeapTypeObject*)type)->ht_cached_keys;
    if (!values || !keys || keys->dk_kind == DICT_KEYS_GENERAL) return NULL;
    const PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES((PyDictKeysObject*)keys);
    for (Py_ssize_t i = 0; i < keys->dk_nentries; ++i)
        if (values->values[i] == value) return entries[i].me_key;
    return NULL;
}

PyObject* tg_dict_of(PyObject* owner) {
    PyTypeObject* type = Py_TYPE(owner);
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
#if PY_VERSION_HEX >= 0x030D0000
        return (PyObject*)_PyObject_ManagedDictPointer(owner)->dict;
#elif PY_VERSION_HEX >= 0x030C0000
        const PyDictOrValues either = *_PyObject_DictOrValuesPointer(owner);
        return _PyDictOrValues_IsValues(either) ? NULL : _PyDictOrValues_GetDict(either);
#else
        return *_PyObject_ManagedDictPointer(owner);
#endif
    }
    if (type->tp_dictoffset <= 0) return NULL;
    return *(PyObject**)(void*)((char*)owner + type->tp_dictoffset);
}

const uint8_t* tg_attribute_values(const uint8_t* object,
                                   int (*read)(void* to, const void* from, size_t size)) {
    const PyDictObject* dict = NULL;
    PyDictObject copy;
#if PY_VERSION_HEX >= 0x030D0000
    const uint8_t* type = NULL;
    unsigned long flags = 0;
    PyDictValues values;
    if (!read(&type, object + offsetof(PyObject, ob_type), sizeof type) ||
        !read(&flags, type + offsetof(PyTypeObject, tp_flags), sizeof flags))
        return NULL;
    const uint8_t* inline_values = object + sizeof(PyObject);
    if ((flags & Py_TPFLAGS_INLINE_VALUES) && read(&values, inline_values, sizeof values) &&
        values.valid)
        return inline_values + offsetof(PyDictValues, values);
    if (!read(&dict, object - 3 * sizeof(void*), sizeof dict)) return NULL;
#elif PY_VERSION_HEX >= 0x030C0000
    PyDictOrValues either;
    if (!read(&either, object - 3 * sizeof(void*), sizeof either)) return NULL;
    if (_PyDictOrValues_IsValues(either))
        return (const uint8_t*)_PyDictOrValues_GetValues(either)->values;
    dict = (const PyDictObject*)either.dict;
#else
    const uint8_t* values = NULL;
    if (!read(&values, object - 4 * sizeof(void*), sizeof values)) return NULL;
    if (values) return values;
    if (!read(&dict, object - 3 * sizeof(void*), sizeof dict)) return NULL;
#endif
    if (!dict || !read(&copy, dict, sizeof copy) || copy.ob_base.ob_type != &PyDict_Type ||
        !copy.ma_values)
        return NULL;
    return (const uint8_t*)copy.ma_values->values;
}

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
