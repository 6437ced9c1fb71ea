// The one interface between libtachograph.so (the shim, which knows nothing of Python) and the
// extension module (which knows nothing of signals and files). Plain C, versioned.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "tachograph/numbers.h"
#include "tachograph/options.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TG_API_VERSION 20u

// Where a frame is: the frame's own address, and the offset of its instruction.
struct tg_position {
    const void* frame;
    int32_t instruction;
};

// An activation of the evaluation loop: an address in its native frame on the C stack, and the node
// of the innermost Python frame that it runs.
struct tg_activation {
    const void* address;
    uint32_t stack;
    uint32_t innermost;  // the walker's: place of that frame in the stack
};

// A frame as it was read; `code` may be freed by the time it is looked at, `id` is that of what it
// says.
struct tg_frame {
    const uint8_t* frame;
    const uint8_t* code;
    int32_t instruction;  // bytes, -1 unknown
    uint32_t id;
};

// A text as CPython keeps it: `length` characters of `width` bytes each (1 Latin-1, 2 UCS-2, 4
// UCS-4).
struct tg_text {
    const uint8_t* data;
    uint32_t length;
    uint8_t width;
};

// A stack, leaf first. `task` is NULL, or the name of asyncio's task that was made of the coroutine
// of frame `of_task`. The activations get the nodes of their innermost frames.
struct tg_path {
    const struct tg_frame* frames;
    size_t count;
    const struct tg_text* task;
    size_t of_task;
    int last_room;
    struct tg_activation* activations;
    uint32_t activation_count;
};

// What a walk found. Filled by the walker; `stack` is TG_NONE unless state says otherwise.
struct tg_walk {
    uint32_t stack;
    uint8_t state;
    uint8_t gil;         // as `gil` of records.toml: 0 no, 1 yes, 2 unknown
    uint8_t opcode;      // 0 unknown
    uint8_t shortened;   // truncated because there was no room for all of it, which was counted
    uint8_t collecting;  // as `collecting` of records.toml: 0 unknown, 1 yes, 2 no
    uint32_t span;       // the number of the span that it is in; 0: none, or it is not known
    // If not NULL: takes the outermost `room` frames, the root first; `depth` says how many.
    struct tg_position* positions;
    uint32_t room;
    uint32_t depth;
    // If not NULL: takes the innermost `activation_room` activations, the innermost first.
    struct tg_activation* activations;
    uint32_t activation_room;
    uint32_t activation_count;
};

// An allocator of the interpreter's (PyMemAllocatorEx), and one of arenas (PyObjectArenaAllocator).
struct tg_allocator {
    void* context;
    void* (*allocate)(void* context, size_t size);
    void* (*allocate_zeroed)(void* context, size_t count, size_t size);
    void* (*reallocate)(void* context, void* block, size_t size);
    void (*release)(void* context, void* block);
};
struct tg_arena_allocator {
    void* context;
    void* (*allocate)(void* context, size_t size);
    void (*release)(void* context, void* arena, size_t size);
};

// How the interpreter keeps small blocks: in pools that begin at multiples of `pool_size`, with the
// size class (0 = `unit` bytes) in a 32-bit number at `class_offset` and the number of blocks in
// use at the pool's begin; pools are in arenas of `arena_size`.
struct tg_pools {
    size_t pool_size;
    size_t class_offset;
    size_t unit;
    size_t classes;
    size_t arena_size;
};

// A place where suspended tasks of asyncio or trio stand: the chain of coroutines of each, down to
// what it awaits, where the task stands that awaits them (TG_NONE: there is none, or it is not
// known), and the span that they are in.
struct tg_awaiting {
    uint32_t stack;
    uint32_t awaiter;
    uint32_t span;  // as in tg_walk
    uint32_t tasks;
    double chance;  // with which each task there was looked at
};

// One census of suspended tasks. Filled by the walker: `count` of at most `room` places.
struct tg_census {
    struct tg_awaiting* places;
    uint32_t room;
    uint32_t count;
    uint32_t torn;        // tasks that moved on while they were read
    uint32_t lost;        // tasks of whose stack there was no room for
    uint32_t readable;    // 0: the program has no tasks, or they could not be read this time
    uint32_t unreadable;  // 1: it has trio, which is not as it is expected to be
};

// What the extension module offers to the shim. None of these may allocate, lock, or call into
// CPython, except thread_name and after_fork, which run in ordinary context, and in_forked_child.
struct tg_walker {
    // Walks the calling thread's Python stack from inside the sampling signal's handler.
    void (*walk_self)(struct tg_walk* out);
    // Walks another thread's Python stack through guarded reads. `hint` is a place to keep the
    // thread's state between calls. `stands(context)` says whether the thread has not run since
    // the caller looked at it: only then is anything of what was read taken down; the caller asks
    // once more at the end. Where `stands` is NULL the thread may be running, in native code: it
    // is read twice, and has moved on if the two differ.
    void (*walk_other)(pid_t tid, void** hint, int (*stands)(void* context), void* context,
                       struct tg_walk* out);
    // Whether a futex at `address` is the GIL that a thread waits for; `hint` as walk_other left it
    // for that thread. Reads through guarded reads.
    int (*is_gil)(const void* hint, const void* address);
    // Where the calling thread's innermost frame is; 0 if it has none.
    int (*position)(struct tg_position* out);
    // Writes the Python name of the thread that the caller is about to create (UTF-8, returns its
    // length, 0 if it is not a Python thread).
    size_t (*thread_name)(char* buffer, size_t size);
    // Runs in the parent after a fork: must see to it that tg_api::restart_helper is called, now
    // or later.
    void (*after_fork)(void);
    // Runs in a forked child, before fork returns: must see to it that tg_api::arm_again is called
    // when the child next runs Python. 1 where native code has forked, so that the child may do
    // other things first. It may neither allocate nor wait: other threads of the parent may have
    // held any lock.
    int (*in_forked_child)(void);
    // An address inside the interpreter's evaluation loop.
    const void* evaluation_loop;
    // The recorder's own thread, every few milliseconds: what watches calls may be due.
    void (*calls_turn)(int64_t now_ns);
    // At the end of a sample's handler: a window of watched calls may begin at this moment.
    void (*calls_sampled)(void);
    // What was counted of calls is to be written, if the calling thread may do so.
    void (*calls_flush)(void);
    // Where the calling thread's innermost frame writes its instruction when it goes on to the next
    // one: 8 bytes; 0 if it has no frame. Safe in signal handlers, as is the next one.
    uint64_t (*progress)(void);
    // Whether any of these bytes are of the header of a Python object: its reference count and
    // type, or what the garbage collection keeps before it. Judged by what lies there.
    int (*is_header)(uint64_t address, uint64_t size);
    // The recorder's own thread: looks at suspended tasks, through guarded reads.
    void (*census)(struct tg_census* out);
    // Whether the interpreter counts the threads of the process after a fork, and warns of several.
    int counts_threads;
};

// Of tg_options::redundancy.
#define TG_REDUNDANT_LOADS 1u
#define TG_REDUNDANT_STORES 2u

struct tg_span {
    const char* name;
    const char* fields;  // JSON, or empty
    int64_t start_ns;
    int64_t end_ns;
    uint32_t span;
    uint32_t parent;  // TG_NONE: there is none
};

// A sampled block that is alive.
struct tg_live_block {
    const void* address;  // only to be compared: another thread may free it meanwhile
    int64_t size;
    uint32_t stack;
};

// A link of a chain of references (tables.toml, `referrers`). Texts are UTF-8, not ended by 0.
struct tg_referrer {
    int64_t time_ns;
    int64_t size;
    uint32_t stack;
    uint32_t chain;
    uint16_t link;
    uint8_t role;  // TG_REFERRER_*
    uint16_t type_length;
    uint16_t name_length;
    const char* type;
    const char* name;
};

// What the shim offers to the extension module.
struct tg_api {
    uint32_t version;
    // How this process is to be recorded: in an environment, or by `configure`. It changes there
    // and in `disarm`.
    const struct tg_options* (*options)(void);
    // Starts recording so. Returns 0, or -1 with one line in `error`.
    int (*arm)(const struct tg_walker* walker, char* error, size_t error_size);
    void (*pause)(void);
    void (*resume)(void);
    int (*active)(void);
    int (*meta)(const char* key, const char* value);
    // An interval of the calling thread's time that the program has named.
    int (*span)(const struct tg_span* span);
    // Asks the recording command to keep what it has, if it deletes old windows; whether it does.
    int (*snapshot)(void);
    void (*restart_helper)(void);
    // In a forked child that goes on with Python, whose calling thread has this name: records it as
    // a process of its own, if its parent was recorded. Returns 0, or -1 if it is not recorded.
    int (*arm_again)(const char* name, size_t length);
    // The interpreter begins to shut down.
    void (*exiting)(void);

    // Where a running interpreter has loaded the shim: where it writes and how, before `arm`. 0, or
    // -1 if that is too long. `disarm` ends the recording, and all is as it was before `configure`;
    // -1: but that there can be no other recording of this process. `early`: why before its time,
    // an errno, or 0.
    int (*configure)(const char* spool, const char* config);
    int (*disarm)(int early);
    // A thread of the recorder's own, 0 for none: it is not recorded. Before `arm`, or at its
    // start.
    void (*leave_out)(pid_t tid);
    // The Python name of a thread that ran already, UTF-8.
    void (*name_thread)(pid_t tid, const char* name, size_t length);

    // Memory, after `arm` with options.memory. All before `begin_memory`, which writes the first
    // row. Wraps the interpreter's allocator of a domain; `pools` is NULL where small blocks cannot
    // be sized. 0 if there is no room for a further wrapper.
    int (*knows_pools)(const struct tg_pools* pools);
    int (*wrap_allocator)(int domain, const struct tg_allocator* original,
                          const struct tg_pools* pools, struct tg_allocator* wrapper);
    // After `arm` without options.memory, with options.redundancy: the wrapper tells what is given
    // back, for an allocator with pools that are known. 0 if there is one already.
    int (*wrap_releases)(int domain, const struct tg_allocator* original,
                         struct tg_allocator* wrapper);
    int (*wrap_arenas)(const struct tg_arena_allocator* original, const struct tg_pools* pools,
                       struct tg_arena_allocator* wrapper);
    // Whether, of the wrappers since the last time, those of allocators and those of arenas are out
    // of use now; those that are not stay.
    void (*unwrapped)(int allocators, int arenas);
    // Whether the last block that the calling thread got from malloc was `block`: only then are
    // the program's native blocks seen.
    int (*saw_block)(const void* block);
    // Bytes that the calling thread has allocated in a domain; negative: it is not counted.
    int64_t (*own_allocated)(int domain);
    // `complete`: what the interpreter holds already is in those pools, or in blocks of malloc's.
    void (*begin_memory)(const struct tg_pools* pools, int complete);
    // Live blocks of the stacks that hold most, those of one stack behind each other; how many.
    size_t (*live_blocks)(struct tg_live_block* found, size_t most);
    void (*referrer)(const struct tg_referrer* link);
    // CPU ns that samples have taken of the program's threads.
    int64_t (*sampling_ns)(void);
    // Counts a cause of the quality ledger.
    void (*count_loss)(uint32_t cause);

    // For the walker, safe in signal handlers:
    // guarded copy; 0 if any byte could not be read
    int (*read)(void* to, const void* from, size_t size);
    // id of the node (parent, code, instruction, task) of the calling context tree, TG_NONE if it
    // is full, or but for `last_room` nearly so; `task` is NULL, or the name of asyncio's task that
    // was made of this frame's coroutine
    uint32_t (*intern_stack)(uint32_t parent, uint32_t code, int32_t instruction,
                             const struct tg_text* task, int last_room);
    // id of the node of a stack's leaf, TG_NONE where intern_stack gives that for any of its
    // frames; while the tables are kept in place (borrow_scratch)
    uint32_t (*intern_path)(const struct tg_path* path);
    // id for a code object by its 64-bit identity; *emit is set if the caller must now write the
    // CODE record and then call code_written
    uint32_t (*intern_code)(uint64_t identity, int* emit);
    void (*code_written)(uint32_t code, int written);
    // room for a record of `size` bytes of kind `kind` (NULL: no room, counted), and its commit;
    // what was reserved is always committed, `filled` = 0 if there is nothing in it after all
    uint8_t* (*reserve)(uint8_t kind, size_t size, uint64_t* ticket);
    void (*commit)(uint8_t* record, uint64_t ticket, int filled);
    // scratch memory for one walk (NULL: none free), which keeps the tables in place
    void* (*borrow_scratch)(size_t* size);
    void (*return_scratch)(void* scratch);
};

// Exported by the shim.
typedef const struct tg_api* (*tg_api_function)(void);
#define TG_API_SYMBOL "tachograph_api"

#ifdef __cplusplus
}
#endif
