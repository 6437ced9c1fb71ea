// Which memory an interrupted thread is about to access, and which it has just accessed.
#pragma once

#include <cstdint>

namespace tachograph::operands {

// One access of one instruction.
struct Access {
    uint64_t pc = 0;
    uint64_t next_pc = 0;
    uint64_t address = 0;
    uint32_t opcode = 0;
    uint16_t width = 0;
    bool reads = false;
    bool writes = false;
};

// `registers` are gregs of a ucontext, whose program counter is the next instruction to run.
using Registers = const long long*;

enum class Next {
    found,
    none,       // where the code goes on is not known, before an access whose address is known
    stack,      // there are such, but of the thread's own stack alone
    header,     // and of headers of objects
    undecoded,  // the bytes are no instruction, or cannot be read
};

// Which accesses are looked for.
struct Wanted {
    bool loads;
    bool stores;
    bool (*is_header)(uint64_t address, uint64_t size);
};

// The first access from the interrupted instruction on that is wanted, and not of the thread's own
// stack: the code is followed as long as it is known what it does (code_walk.h).
Next next(Registers registers, const Wanted& wanted, Access* out);

enum class Last {
    found,
    ambiguous,  // several instructions can have made it
    unknown,    // none that we know can
};

// The access of [address, address + size) that the instruction before the program counter has made.
// x86 cannot be read backwards: of all instructions that end there, those count that access these
// bytes; between several decides which of them the code before leads to.
Last last(Registers registers, uint64_t address, uint32_t size, Access* out);

}  // namespace tachograph::operands
