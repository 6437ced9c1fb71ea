// The DWARF expressions that stand for addresses in unwind rows, reduced to a register, one
// displacement and one offset.
#pragma once

#include "unwind/cursor.h"

#include <cstdint>

namespace tachograph::unwind {

struct Location {
    enum class Kind : uint8_t { unknown, constant, offset, deref };
    Kind kind = Kind::unknown;
    uint8_t base = 0;          // register
    int64_t displacement = 0;  // deref: of the word that is read
    int64_t offset = 0;
};

// Consumes the whole expression. `pc` is the value of the instruction pointer, by which a PLT entry
// knows how much it has pushed.
Location evaluate(Cursor* expression, uint64_t pc);

}  // namespace tachograph::unwind
