// Compiled per CPython version, in C, because CPython's internal headers are C only.
#define Py_BUILD_CORE 1
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x03100000
#error "tachograph records CPython 3.11 to 3.15"
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
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX >= 0x030C0000
#include <internal/pycore_obmalloc.h>
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe_structs.h>
#endif
#pragma GCC diagnostic pop

#include "offsets.h"
#include "tachograph/api.h"

#if PY_VERSION_HEX >= 0x030D0000
#define TG_FRAME_CODE f_executable
#define TG_FRAME_INSTRUCTION instr_ptr
#else
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
    .instruction_is_previous = 1,
#endif
    .tstate_chunk = offsetof(PyThreadState, datastack_chunk),
    .chunk_previous = offsetof(_PyStackChunk, previous),
    .chunk_size = offsetof(_PyStackChunk, size),
    .interpreter_next = offsetof(PyInterpreterState, next),
    .interpreter_threads = offsetof(PyInterpreterState, threads.head),
    .runtime_interpreters = offsetof(_PyRuntimeState, interpreters.head),
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
    .owner_shim_first = 255,
    .owner_shim_last = 255,
#endif
    .code_flags = offsetof(PyCodeObject, co_flags),
    .code_first_line = offsetof(PyCodeObject, co_firstlineno),
    .code_filename = offsetof(PyCodeObject, co_filename),
    .code_qualname = offsetof(PyCodeObject, co_qualname),
    .code_line_table = offsetof(PyCodeObject, co_linetable),
    .code_units = offsetof(PyVarObject, ob_size),
    .code_instructions = offsetof(PyCodeObject, co_code_adaptive),
    .bytes_size = offsetof(PyVarObject, ob_size),
    .bytes_data = offsetof(PyBytesObject, ob_sval),
    .object_type = offsetof(PyObject, ob_type),
    .type_name = offsetof(PyTypeObject, tp_name),
    .type_base = offsetof(PyTypeObject, tp_base),
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

void* tg_own_thread_state(int* attached) {
#if PY_VERSION_HEX >= 0x030D0000
    PyThreadState* current = PyThreadState_GetUnchecked();
#else
    PyThreadState* current = _PyThreadState_UncheckedGet();
#endif
    PyThreadState* own = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030C0000
    // Thread-local since 3.12, and right in subinterpreters too, where the GILState one may not be.
    if (current) own = current;
#endif
    *attached = own && own == current;
    return own;
}

void* tg_running_thread_state(void) {
#if PY_VERSION_HEX >= 0x030C0000
    return NULL;
#else
    return _PyThreadState_UncheckedGet();
#endif
}

const void* tg_evaluation_loop(void) {
    const void* address;
    PyObject* (*function)(PyThreadState*, struct _PyInterpreterFrame*, int) =
        _PyEval_EvalFrameDefault;
    memcpy(&address, &function, sizeof address);  // ISO C has no cast between the two
    return address;
}
