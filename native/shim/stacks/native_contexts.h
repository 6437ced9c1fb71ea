// The tree of native call paths, beside that of the Python stacks: each new node is also a
// NATIVE_STACK record in the spool.
#pragma once

#include <cstdint>

namespace tachograph::native_contexts {

// Maps the table. False if there is no memory.
bool open();

// In a forked child: the table is empty, as its spool is.
void forget();

// A frame of a path; `stack` is kNone but in an activation of the evaluation loop.
struct Frame {
    uint64_t pc;
    uint32_t stack;
    uint64_t hash;  // of the path up to here: see next_hash
};

// The hash of a path with one frame more; what is known of it will be wanted soon.
uint64_t next_hash(uint64_t hash, uint64_t pc, uint32_t stack);

// Id, from 1 on, of the node of a frame below `parent` (0: there is none); writes its record when
// new. 0 when full; `last_room`: not before that is full, too, which is for the innermost frames of
// paths that found no room.
uint32_t intern(uint32_t parent, const Frame& frame, bool last_room = false);

// For generations.cpp: the tables in one of their places; all is well where there are none.
bool nearly_full(uint32_t place);
uint32_t first(uint32_t place);
bool may_follow(uint32_t present, uint32_t next);
void follow(uint32_t present, uint32_t next);
bool clear(uint32_t place);

}  // namespace tachograph::native_contexts
