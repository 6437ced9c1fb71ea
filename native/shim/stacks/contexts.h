// The calling context tree and the table of code objects: lock-free, insert-only, in anonymous
// memory of their own; each new node is also a record in the spool.
#pragma once

#include "tachograph/api.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::contexts {

// Maps the tables (virtual memory; pages are touched as they fill). False if there is none.
bool open();

// In a forked child: the tables are empty, as its spool is.
void forget();

// Id of node (parent, code, instruction, task); writes its STACK or TASK_STACK record when new.
// kNone when full. Where there is no more room for names of tasks, it is the node of no task.
uint32_t intern_stack(uint32_t parent, uint32_t code, int32_t instruction,
                      const tg_text* task = nullptr);

// Id for a code object's 64-bit identity (collisions: 2^-64, knowingly). *emit is set when the
// caller must write the CODE record and report with code_written. kNone when full.
uint32_t intern_code(uint64_t identity, int* emit);
void code_written(uint32_t code, bool written);

// Scratch memory for one walk; handlers of different threads run at the same time.
void* borrow_scratch(size_t* size);
void return_scratch(void* scratch);

}  // namespace tachograph::contexts
