#include "redundancy/operands.h"

#include "base/safe_read.h"
#include "redundancy/code_walk.h"
#include "redundancy/decoder.h"

#include <sys/ucontext.h>
#include <initializer_list>

namespace tachograph::operands {
namespace {

using decoder::Instruction;
using decoder::kLongest;
using decoder::Memory;

constexpr uint32_t kMostSteps = 40;
// What is so near above the stack pointer is the thread's stack: frames of CPython and of what it
// calls. What is below it is dead, or about to be written by the next call.
constexpr uint64_t kStackAbove = 1024 * 1024;
constexpr uint64_t kStackBelow = 64 * 1024;

uint64_t address_of(const Memory& memory, uint64_t next_pc, Registers registers) {
    const uint64_t address = register_value(registers, memory.base, next_pc) +
                             register_value(registers, memory.index, next_pc) * memory.scale +
                             static_cast<uint64_t>(memory.displacement);
    return memory.narrow ? address & 0xFFFFFFFFu : address;
}

uint32_t needs(const Memory& memory) {
    uint32_t bits = 0;
    for (const uint8_t number : {memory.base, memory.index})
        if (number != decoder::kNoRegister && number != decoder::kPc) bits |= 1u << number;
    return bits;
}

bool on_stack(uint64_t address, Registers registers) {
    const auto pointer = static_cast<uint64_t>(registers[REG_RSP]);
    return address + kStackBelow >= pointer && address < pointer + kStackAbove;
}

Access access_of(const Instruction& instruction, uint64_t pc, uint64_t address) {
    Access access;
    access.pc = pc;
    access.next_pc = pc + instruction.length;
    access.address = address;
    access.width = instruction.memory.width;
    access.opcode = instruction.opcode;
    access.reads = instruction.memory.reads;
    access.writes = instruction.memory.writes;
    return access;
}

bool overlaps(const Access& access, uint64_t address, uint32_t size) {
    return access.address < address + size && address < access.address + access.width;
}

// What ends at the end of `bytes` and may have made the access, by its length.
struct Candidates {
    uint32_t sure = 0;      // bit N: an instruction of N bytes whose operand is there
    uint32_t possible = 0;  // its operand is not known any more: it has changed its own register
};

constexpr size_t kBefore = 96;  // bytes of code that are looked at before a trap

// How many of the places some way back lead to an instruction of `length` bytes at the end: code
// that is decoded from a wrong place falls into step after a few instructions.
uint32_t votes_for(uint32_t length, const uint8_t* code, size_t size) {
    uint32_t votes = 0;
    for (size_t start = 0; start + 2 * kLongest < size && start < 2 * kLongest; ++start) {
        size_t at = start;
        Instruction instruction;
        while (at + length < size && decoder::decode(code + at, size - at, &instruction))
            at += instruction.length;
        if (at + length == size) ++votes;
    }
    return votes;
}

uint32_t elected(uint32_t lengths, const uint8_t* code, size_t size) {
    if ((lengths & (lengths - 1)) == 0) return lengths;
    uint32_t best = 0;
    uint32_t most = 0;
    bool tie = false;
    for (uint32_t length = 1; length <= kLongest; ++length) {
        if ((lengths >> length & 1) == 0) continue;
        const uint32_t votes = votes_for(length, code, size);
        tie = votes == most;
        if (votes <= most) continue;
        most = votes;
        best = 1u << length;
    }
    return tie ? 0 : best;
}

}  // namespace

Next next(Registers registers, const Wanted& wanted, Access* out) {
    CodeWalk walk(registers);
    Next met = Next::none;
    for (uint32_t step = 0; step < kMostSteps; ++step) {
        Instruction instruction;
        if (!walk.decode(&instruction)) return step == 0 ? Next::undecoded : met;
        uint64_t address = 0;
        if (instruction.memory.width != 0 && walk.address_of(instruction, &address)) {
            *out = access_of(instruction, walk.pc(), address);
            if (on_stack(address, registers)) {
                if (met == Next::none) met = Next::stack;
            } else if (out->writes ? wanted.stores : wanted.loads) {
                if (!wanted.is_header(address, out->width)) return Next::found;
                met = Next::header;
            }
        }
        if (!walk.step(instruction)) break;
    }
    return met;
}

Last last(Registers registers, uint64_t address, uint32_t size, Access* out) {
    const auto end = static_cast<uint64_t>(registers[REG_RIP]);
    uint8_t code[kBefore];
    size_t known = sizeof code;
    while (known > 0 && !safe_read::copy(code, reinterpret_cast<const void*>(end - known), known))
        known -= known > kLongest ? kLongest : known;
    Candidates candidates;
    Access accesses[kLongest + 1];
    for (uint32_t length = 1; length <= kLongest && length <= known; ++length) {
        Instruction instruction;
        if (!decoder::decode(code + known - length, length, &instruction) ||
            instruction.length != length || instruction.memory.width == 0 ||
            instruction.flow == decoder::Flow::leaves)
            continue;
        accesses[length] =
            access_of(instruction, end - length, address_of(instruction.memory, end, registers));
        if ((needs(instruction.memory) & instruction.changes) != 0)
            candidates.possible |= 1u << length;
        else if (overlaps(accesses[length], address, size))
            candidates.sure |= 1u << length;
    }
    const uint32_t either = candidates.sure != 0 ? candidates.sure : candidates.possible;
    if (either == 0) return Last::unknown;
    const uint32_t chosen = elected(either, code, known);
    if (chosen == 0) return Last::ambiguous;
    *out = accesses[__builtin_ctz(chosen)];
    return Last::found;
}

}  // namespace tachograph::operands
