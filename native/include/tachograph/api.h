// The one interface between libtachograph.so (the shim, which knows nothing of Python) and the
// extension module (which knows nothing of signals and files). Plain C, versioned.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TG_API_VERSION 1u
#define TG_NONE 0xFFFFFFFFu

// stack_state of tables.toml
enum tg_stack_state {
    TG_STACK_WHOLE = 0,
    TG_STACK_NONE = 1,
    TG_STACK_TORN = 2,
    TG_STACK_TRUNCATED = 3,
    TG_STACK_LOST = 4,
    TG_STACK_UNSEEN = 5,
};

// What a walk found. Filled by the walker; `stack` is TG_NONE unless state says otherwise.
struct tg_walk {
    uint32_t stack;
    uint8_t state;
    uint8_t gil;     // 0 no, 1 yes, 2 unknown
    uint8_t opcode;  // 0 unknown
};

// What the extension module offers to the shim. None of these may allocate, lock, or call into
// CPython, except thread_name and after_fork, which run in ordinary context.
struct tg_walker {
    // Walks the calling thread's Python stack from inside the sampling signal's handler.
    void (*walk_self)(struct tg_walk* out);
    // Walks another thread's Python stack through guarded reads. `hint` is a place to keep the
    // thread's state between calls. `stands(context)` says whether the thread has not run since
    // the caller looked at it: only then is anything of what was read taken down; the caller asks
    // once more at the end.
    void (*walk_other)(pid_t tid, void** hint, int (*stands)(void* context), void* context,
                       struct tg_walk* out);
    // Writes the Python name of the thread that the caller is about to create (UTF-8, returns its
    // length, 0 if it is not a Python thread).
    size_t (*thread_name)(char* buffer, size_t size);
    // Runs in the parent after a fork: must see to it that tg_api::restart_helper is called, now
    // or later.
    void (*after_fork)(void);
    // An address inside the interpreter's evaluation loop.
    const void* evaluation_loop;
};

struct tg_options {
    const char* spool;
    int64_t interval_ns;
    int waits;
    int paused;
    uint64_t segment_size;
};

// What the shim offers to the extension module.
struct tg_api {
    uint32_t version;
    // Starts recording. Returns 0, or -1 with one line in `error`.
    int (*arm)(const struct tg_options* options, const struct tg_walker* walker, char* error,
               size_t error_size);
    void (*pause)(void);
    void (*resume)(void);
    int (*active)(void);
    int (*meta)(const char* key, const char* value);
    void (*restart_helper)(void);

    // For the walker, safe in signal handlers:
    // guarded copy; 0 if any byte could not be read
    int (*read)(void* to, const void* from, size_t size);
    // id of the node (parent, code, instruction) of the calling context tree, TG_NONE if full
    uint32_t (*intern_stack)(uint32_t parent, uint32_t code, int32_t instruction);
    // id for a code object by its 64-bit identity; *emit is set if the caller must now write the
    // CODE record and then call code_written
    uint32_t (*intern_code)(uint64_t identity, int* emit);
    void (*code_written)(uint32_t code, int written);
    // room for a record of `size` bytes of kind `kind` (NULL: no room, counted), and its commit;
    // what was reserved is always committed, `filled` = 0 if there is nothing in it after all
    uint8_t* (*reserve)(uint8_t kind, size_t size, uint64_t* ticket);
    void (*commit)(uint8_t* record, uint64_t ticket, int filled);
    // scratch memory for one walk (NULL: none free)
    void* (*borrow_scratch)(size_t* size);
    void (*return_scratch)(void* scratch);
};

// Exported by the shim.
typedef const struct tg_api* (*tg_api_function)(void);
#define TG_API_SYMBOL "tachograph_api"

#ifdef __cplusplus
}
#endif
