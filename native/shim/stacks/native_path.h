// Both stacks of the calling thread at one moment: the Python frames, and the native call path with
// the places of the Python frames in it.
#pragma once

#include "spool/layout.h"
#include "tachograph/api.h"
#include "unwind/unwinder.h"

#include <sys/types.h>
#include <cstdint>

namespace tachograph::native_path {

struct Found {
    uint32_t stack = 0;  // of native_contexts: the callers of the innermost frame
    unwind::Path path = unwind::Path::unrecorded;
    bool unknown_code = false;  // it ended at code that may be known a moment later
    // Of a thread without Python frames: the one on whose stack its work lies, if that is known.
    uint32_t work_holder = kNone;
};

// Makes room, where paths are wanted. False if there is no memory.
bool open();
void forget();

// The same in a hook of ours that was called at `caller` (0: not known), from ordinary context. The
// path is that of the callers of `caller`.
Found walk_hook(uint64_t caller, const unwind::Registers& here, tg_walk* python);

// Another thread, and how to know that it stands still: as tg_walker::walk_other has them.
struct Other {
    pid_t tid;
    void** hint;
    int (*stands)(void* context);
    void* context;
};
// Where its program counter and stack pointer are, as the kernel tells them; 0: they are not known.
// All other registers are not known before a frame on its stack has saved them.
struct Standing {
    uint64_t pc;
    uint64_t sp;
};

// As the walker's walk_other, and where paths are wanted the path of `at`. From the recorder's own
// thread. What is found of a thread that ran meanwhile is of no use.
Found walk_other(const Other& thread, const Standing& at, tg_walk* python);

// As stack_capture::walk, and where paths are wanted the path from `start` on.
Found walk(bool fault_gets_through, const unwind::Registers& start, tg_walk* python);

}  // namespace tachograph::native_path
