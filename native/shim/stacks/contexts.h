// The calling context tree and the table of code objects: lock-free, insert-only, in anonymous
// memory of their own; each new node is also a record in the spool.
#pragma once

#include "tachograph/api.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::contexts {

// How many nodes and codes a generation has room for. When three quarters of the nodes are there,
// another one begins: it may take 18 MB until then, and be full within five seconds only where each
// sample of a hundred a second, on twenty threads, has a hundred callers that no other one has.
struct Sizes {
    uint32_t nodes = 1u << 20;
    uint32_t codes = 1u << 18;
};

// Maps the tables (virtual memory; pages are touched as they fill). False if there is none.
bool open(const Sizes& sizes = {});

// In a forked child: the tables are empty, as its spool is.
void forget();

// Id of node (parent, code, instruction, task); writes its STACK or TASK_STACK record when new.
// kNone when full; `last_room`: not before that is full, too, which is for the innermost frames of
// stacks that found no room. Where there is no more room for names of tasks, it is the node of no
// task.
uint32_t intern_stack(uint32_t parent, uint32_t code, int32_t instruction,
                      const tg_text* task = nullptr, bool last_room = false);

// Whether the record of a node of this generation is in the spool.
bool is_written(uint32_t stack);

// Id for a code object's 64-bit identity (collisions: 2^-64, knowingly). *emit is set when the
// caller must write the CODE record and report with code_written. kNone when full.
uint32_t intern_code(uint64_t identity, int* emit);
void code_written(uint32_t code, bool written);

// For generations.cpp: the tables in one of their places.
bool nearly_full(uint32_t place);
uint32_t first_stack(uint32_t place);
uint32_t first_code(uint32_t place);
// Makes room for another generation. False if that is not possible.
bool may_follow(uint32_t present, uint32_t next);
void follow(uint32_t present, uint32_t next);
bool clear(uint32_t place);

// Scratch memory for one walk; handlers of different threads run at the same time. From then until
// it is given back the calling thread works in one generation of the tables.
void* borrow_scratch(size_t* size);
void return_scratch(void* scratch);

}  // namespace tachograph::contexts
