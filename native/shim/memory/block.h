// One sampled block.
#pragma once

#include <cstdint>

namespace tachograph::blocks {

struct Block {
    int64_t time_ns;
    int64_t size;
    int64_t requested;
    int64_t mean;  // of the sample that it is in
    uint64_t pc;
    uint32_t thread;
    uint32_t stack;
    uint32_t native_stack;
    uint32_t span;
    uint8_t domain;
    uint8_t stack_state;
    uint8_t native_path;
    bool
        at_once;  // certain to be sampled, and worth a row: written now, there after a kill as well
    bool page;    // of the program's reserves: it has neighbours that came with it
    // Of one that realloc may move:
    int64_t walked_ns;  // when its stack was walked
    const void* frame;  // the Python frame and its instruction then; null: not known
    int32_t instruction;
    uint16_t
        forms_slot;     // what it was before, and is told of as one (blocks.cpp), and whose that is
    uint32_t forms_of;  // 0: nothing
};

}  // namespace tachograph::blocks
