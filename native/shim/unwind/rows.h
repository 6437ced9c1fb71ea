// Finds and interprets the unwind rows of one program counter (.eh_frame, as the Linux Standard
// Base and DWARF 5, section 6.4, define it). Guarded reads and fixed buffers only.
#pragma once

#include "unwind/images.h"
#include "unwind/rules.h"

#include <cstdint>

namespace tachograph::unwind::rows {

// A function, or the code between two functions that have rows.
struct Gap {
    uint64_t start = 0;
    uint64_t end = 0;
};

// The rule of an address in `image`. `pc` is where the instruction pointer stands, `address` what
// is looked up: the same, or the byte before it, which is still in the call. `gap` is where the
// address lies.
Rule find(const images::Image& image, uint64_t address, uint64_t pc, Gap* gap);

}  // namespace tachograph::unwind::rows
