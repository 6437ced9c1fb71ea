// Single instructions, as far as watchpoints need to know them (Zydis behind it). Safe in signal
// handlers: no allocation, no lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::decoder {

inline constexpr size_t kLongest = 15;  // bytes of an instruction
inline constexpr uint8_t kNoRegister = 0xFF;
inline constexpr uint8_t kPc = 16;  // behind the sixteen general registers, in the machine's order

// A memory operand whose address can be computed: base + index * scale + displacement.
struct Memory {
    int64_t displacement = 0;
    uint16_t width = 0;  // bytes
    uint8_t base = kNoRegister;
    uint8_t index = kNoRegister;
    uint8_t scale = 0;
    bool narrow = false;  // the address has 32 bits
    bool reads = false;
    bool writes = false;
};

// What an instruction computes, as far as a walk over code follows it.
enum class Operation : uint8_t {
    other,
    move,
    move_signed,
    address,  // lea
    add,
    subtract,
    conjoin,
    disjoin,
    differ,   // xor
    compare,  // subtracts for the flags alone
    test,     // conjoins for the flags alone
};

// Of such an operation.
struct Operand {
    enum class Kind : uint8_t { none, general, immediate, memory };
    Kind kind = Kind::none;
    uint8_t number = kNoRegister;  // of a general register: its lowest `width` bytes
    uint8_t width = 0;
    uint64_t value = 0;  // immediate
};

// Where a thread goes on after an instruction.
enum class Flow : uint8_t {
    next,
    jump,    // to `target`
    branch,  // to `target` if the flags meet `condition`
    leaves,  // elsewhere: calls, returns, the kernel
};

struct Instruction {
    // Empty (width 0) where no memory is accessed, or in a way that cannot be watched: by
    // push, pop and call, by string instructions, through masks, through a segment (thread-local
    // variables), or under a lock.
    Memory memory;
    Memory computed;  // the address that a lea computes, as base, index, scale and displacement
    Operand first;    // and destination
    Operand second;
    int64_t target = 0;    // counted from the end of the instruction
    uint32_t changes = 0;  // general registers that it writes, as bits
    uint16_t opcode = 0;   // number of the opcode map * 256 + opcode
    uint8_t length = 0;
    Operation operation = Operation::other;
    Flow flow = Flow::next;
    uint8_t condition = 0;  // the machine's number of it
    bool repeats = false;   // a string instruction with rep
    bool changes_flags = false;
    bool stores = false;  // to memory in any way
};

// Before the first use.
void prepare();
// False where the bytes are no instruction.
bool decode(const uint8_t* bytes, size_t size, Instruction* out);

}  // namespace tachograph::decoder
