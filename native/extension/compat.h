// What differs between CPython's versions: where it keeps what a stack walk reads, and what it has
// a function for. All else in this folder is the same for every version; a new one is a change of
// the files that include compat_internal.h.
#pragma once

#include <Python.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TG_NO_SHIMS 255

struct tg_offsets {
    // PyThreadState
    size_t tstate_next;
    size_t tstate_native_thread_id;
    size_t tstate_frame;  // current_frame, or the _PyCFrame that holds it
    int frame_in_cframe;  // 3.11 and 3.12: the frame is one step further, in the _PyCFrame
    size_t cframe_frame;  // its offset there
    size_t cframe_previous;
    size_t tstate_chunk;    // datastack_chunk
    size_t tstate_context;  // what is current for contextvars
    // _PyStackChunk
    size_t chunk_previous;
    size_t chunk_size;
    // PyInterpreterState, _PyRuntimeState
    size_t interpreter_next;
    size_t interpreter_threads;
    size_t runtime_interpreters;
    // The GIL: since 3.12 an interpreter points at it; up to 3.11 (where `interpreter_gil` is 0)
    // there is one, in _PyRuntimeState
    size_t interpreter_gil;
    size_t interpreter_collecting;  // int: 1 in a garbage collection, else 0
    size_t runtime_gil;
    size_t gil_size;
    // The task of asyncio that runs: in _PyThreadStateImpl, or (up to 3.13, where `tstate_task` is
    // 0) in a dict {loop: task} of the main interpreter's module _asyncio
    size_t tstate_task;
    size_t tstate_interpreter;
    size_t interpreter_modules;  // sys.modules
    size_t runtime_main;
    size_t module_dict;
    size_t task_coroutine;  // TaskObj.task_coro; task_name and task_context are the next fields
    size_t coroutine_frame;
    // PyContext, PyHamtObject
    size_t context_variables;
    size_t variables_root;
    // PyDictObject, PyDictKeysObject; its entries follow the indices
    size_t dict_keys;
    size_t dict_values;
    size_t keys_log2_index_bytes;
    size_t keys_kind;
    size_t keys_count;
    size_t keys_indices;
    // _PyInterpreterFrame
    size_t frame_size;  // bytes to read, up to and with `owner`
    size_t frame_code;
    size_t frame_globals;
    size_t frame_previous;
    size_t frame_instruction;
    size_t frame_owner;
    uintptr_t code_tag_mask;      // tag bits of the code reference
    uint8_t owner_generator;      // frames of this owner lie anywhere,
    uint8_t owner_shim_first;     // of these owners have no code (TG_NO_SHIMS: there are none),
    uint8_t owner_shim_last;      // all others but `thread` (0) are not walked
    int instruction_is_previous;  // 3.11, 3.12: the unit before the next one, may be before the
                                  // first
    // PyCodeObject
    size_t code_flags;
    size_t code_first_line;
    size_t code_filename;
    size_t code_qualname;
    size_t code_line_table;
    size_t code_units;  // ob_size
    size_t code_instructions;
    int code_deaths_told;  // tg_watch_code_deaths works: since 3.12
    // PyBytesObject, PyObject
    size_t bytes_size;
    size_t bytes_data;
    size_t object_type;
    // PyTypeObject
    size_t type_name;
    size_t type_flags;
    unsigned long type_flag;  // of the types of types
    size_t type_base;
    size_t type_dict;
    size_t type_keys;  // of a class: the names of its objects' attributes
    // What a census of suspended tasks reads. TaskObj and FutureObj: the first callback
    size_t future_callback;
    // PyGenObject; suspended from the first state on, up to the one that ends; while it awaits in
    // the first of those that `awaits` says (up to 3.12, where it is TG_NO_STATE, the next
    // instruction says so)
    size_t generator_state;
    int8_t suspended_first;
    int8_t suspended_end;
    int8_t awaits;
    // _PyInterpreterFrame: its values, and how many there are, or (from 3.14 on, where
    // `frame_values` is 0) where they end
    size_t frame_values;
    size_t frame_values_end;
    uintptr_t value_tag_mask;
    // PySetObject, PyWeakReference, PyCFunctionObject, PyFunctionObject, PyCellObject,
    // PyMethodObject, PyTupleObject
    size_t set_used;
    size_t set_mask;
    size_t set_table;
    size_t reference_target;
    size_t builtin_self;
    size_t function_closure;
    size_t cell_value;
    size_t method_self;
    size_t tuple_size;
    size_t tuple_items;
    // The tasks of asyncio: a name in _asyncio of a WeakSet, or lists of the threads and of the
    // interpreter (from 3.14 on): offsets of their heads, and of a task's node
    const char* all_tasks;
    size_t tstate_tasks;
    size_t interpreter_tasks;
    size_t task_node;
};

#define TG_NO_STATE 127

// Where the values of an object's attributes lie, in the order in which its class first set them,
// if they are kept like that: reads through `read`; NULL if not.
const uint8_t* tg_attribute_values(const uint8_t* object,
                                   int (*read)(void* to, const void* from, size_t size));
// Where an object keeps what a member descriptor, of a name in `__slots__`, stands for; 0 if it is
// no such descriptor.
size_t tg_slot_offset(const uint8_t* descriptor,
                      int (*read)(void* to, const void* from, size_t size));
// Whether a suspended frame whose next instruction is this one awaits something; up to 3.12.
int tg_resumes_await(uint8_t opcode, uint8_t argument);

// Offsets for the running interpreter: compiled in, checked against what 3.13+ publishes of itself.
// NULL if the two disagree in a way that we cannot follow.
const struct tg_offsets* tg_offsets_of_runtime(void);

// The shape of a string from a copy of its first tg_unicode_header bytes; 0 if it is not compact.
extern const size_t tg_unicode_header;
struct tg_unicode_shape {
    size_t length;  // characters
    size_t width;   // bytes per character
    size_t data;    // offset of the first
    int64_t hash;   // of the characters; -1: not known
};
int tg_unicode_shape_of(const void* header, struct tg_unicode_shape* shape);

// The value of an int of at most 32 bits; 0 if it is none. Reads through `read`.
int tg_small_number(const uint8_t* object, int (*read)(void* to, const void* from, size_t size),
                    uint32_t* value);

// How pymalloc keeps small blocks.
struct tg_pools;
extern const struct tg_pools tg_small_blocks;

// Address of _PyRuntime.
const void* tg_runtime(void);
// Finds where the interpreter keeps the calling thread's state. At arming, by a thread that is
// attached; it is detached for a moment. `read` is a guarded read: nonzero if all was read.
void tg_find_thread_locals(int (*read)(void* to, const void* from, size_t size));
// The calling thread's state; `attached` = it holds the GIL. Safe in a signal handler.
void* tg_own_thread_state(int* attached);
// 0: of threads that are not attached tg_own_thread_state knows nothing.
int tg_own_thread_state_is_found(void);
// Up to 3.11 the state that holds the one GIL, of whatever thread and interpreter: perhaps the
// calling thread's in a subinterpreter, for which there is nothing better. May be freed meanwhile.
// NULL since 3.12. Safe in a signal handler.
void* tg_running_thread_state(void);

// `died` is called for each code object that is about to be freed. Nothing where `code_deaths_told`
// is 0, nor if other watchers have taken all places.
void tg_watch_code_deaths(void (*died)(const void* code));
void tg_unwatch_code_deaths(void);
// The value of a local variable, a new reference; NULL with an exception set if there is none.
PyObject* tg_local_variable(PyFrameObject* frame, const char* name);
// Whether os.fork counts the threads, to warn of several, after the functions of register_at_fork:
// since 3.13; before them up to 3.12.
extern const int tg_counts_threads_after_fork_functions;

// Whether os.fork counts the threads of the process at all, and warns of several: since 3.12.
extern const int tg_counts_threads;

// Whether the interpreter has begun to end: other threads can take the GIL no more.
int tg_is_finalizing(void);

// How long a thread waits for the GIL until it asks for it. Each short call that lets the GIL go
// and takes it back begins that time anew, so one that waits beside such calls may never ask. It is
// made short, which gives what it was (0: it was not changed), and put back, unless the program has
// set it meanwhile. None of these needs the GIL; the interpreter is the one that PyGILState_Ensure
// enters.
unsigned long tg_shorten_switch_interval(void);
void tg_restore_switch_interval(unsigned long before);
// What it is; 0 while it is short.
unsigned long tg_switch_interval(void);
// In the child of a fork that came meanwhile, which has no other trace of it for certain: threads
// that hold no GIL write memory while a fork copies it, and the child may have one page of before
// and one of after that. `known`: what it was; 0: as CPython has it.
void tg_restore_switch_interval_in_child(unsigned long known);

// PyEval_RestoreThread, for a thread that the interpreter's end may find without it. CPython before
// 3.14 ends such a thread by pthread_exit, which unwinds its stack: C++ code with destructors makes
// that the end of the program. Here the thread sleeps for good, as with 3.14 and later.
void tg_restore_thread(PyThreadState* state);

// An address in the evaluation loop.
const void* tg_evaluation_loop(void);

// Py_AddPendingCall, from a thread that is not the program's: the main thread notices it at once.
// Up to 3.12 it would not before it next takes the GIL. 0: there is room for it.
int tg_add_pending_call(int (*function)(void*));
// The same in a child that native code has forked, by its only thread: waits for nothing. -1 also
// where that thread will not make the call, or another one of the parent's held the queue.
int tg_add_pending_call_in_child(int (*function)(void*));

// The calls that the main thread is to make when it next runs Python, where another process can add
// one (entering.cpp): offsets from `queue` if nothing else is said.
struct tg_pending_calls {
    size_t runtime_initialized;  // in _PyRuntimeState: int
    size_t runtime_main;         // the main interpreter
    size_t runtime_main_thread;  // what pthread_self() is in the main thread
    size_t runtime_main_tstate;  // 0 up to 3.12
    int in_interpreter;          // 3.11: the queue is in the main interpreter, not in the runtime
    size_t queue;
    size_t lock;
    int lock_is_pointer;  // up to 3.12: to `lock_size` bytes
    size_t lock_size;
    size_t to_do;  // int: 1, or since 3.13 how many
    size_t calls;
    size_t call_size;
    size_t call_argument;
    size_t call_flags;  // 0 up to 3.12
    int call_flag;
    int count;
    size_t first;
    size_t last;
    size_t breaker;  // in the main interpreter, since 3.13 in the main thread's state
    uintptr_t breaker_bits;
    size_t breaker_size;
};
// NULL from 3.14 on, which has sys.remote_exec.
const struct tg_pending_calls* tg_pending_calls_of_runtime(void);

// A file that a thread is to run, as sys.remote_exec writes it (from 3.14 on): offsets.
struct tg_remote_script {
    size_t runtime_newest;  // in _PyRuntimeState: the interpreter that was made last
    size_t runtime_main;    // in _PyRuntimeState: the main interpreter
    size_t enabled;         // in an interpreter: int
    size_t main_thread;     // in an interpreter: the state of its main thread
    size_t breaker;         // in a thread's state: the word that it looks at
    size_t breaker_bits;
    size_t pending;  // in a thread's state: int
    size_t path;     // in a thread's state: a string of less than `path_size` bytes
    size_t path_size;
};
// NULL up to 3.13.
const struct tg_remote_script* tg_remote_script_of_runtime(void);

// The calling thread's innermost frame; it is attached.
const void* tg_own_frame(void);
// A pointer of ours for each code object. `freed` gets it when the object is about to be freed.
// The index is negative if there is none left.
int tg_request_code_extra(void (*freed)(void* extra));
void* tg_code_extra(void* code, int index);
int tg_set_code_extra(void* code, int index, void* extra);

// Whether it is a function's code: not that of a module or of a class, which runs once.
int tg_is_function(const void* code);
// Whether calls of it by bytecode stay in the evaluation loop although a function is in place that
// evaluates frames (PEP 523): constructors, in 3.12 and 3.13.
int tg_is_inlined_unseen(const void* code);
// Whether its calls are suspended and go on: a generator's, a coroutine's.
int tg_is_generator(const void* code);

// sys.monitoring, since 3.12.
extern const int tg_has_monitoring;

// Visits what the local variables of the functions refer to that a thread runs, the innermost
// first; it holds the GIL, or waits for it. What `visit` gives but 0 ends it.
typedef int (*tg_visit_local)(PyObject* value, PyObject* code, int variable, void* context);
void tg_visit_locals(PyThreadState* tstate, tg_visit_local visit, void* context);
// The name of a local variable, borrowed.
PyObject* tg_name_of_local(PyObject* code, int variable);
// The name of the attribute by which an object refers to another without a dict of its own,
// borrowed; NULL if there is none.
PyObject* tg_inline_attribute(PyObject* owner, PyObject* value);
// An object's own dict, borrowed; NULL if it has none yet.
PyObject* tg_dict_of(PyObject* owner);

#ifdef __cplusplus
}
#endif
