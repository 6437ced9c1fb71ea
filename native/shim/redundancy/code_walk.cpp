#include "redundancy/code_walk.h"

#include "base/safe_read.h"

#include <sys/ucontext.h>
#include <initializer_list>

namespace tachograph {
namespace {

using decoder::Instruction;
using decoder::kLongest;
using decoder::kNoRegister;
using decoder::Memory;
using decoder::Operand;
using decoder::Operation;

constexpr uint64_t kPage = 4096;

// From the machine's order of registers to that of a ucontext.
constexpr int kPlaces[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                             REG_R12, REG_R13, REG_R14, REG_R15};

constexpr uint64_t kCarry = 1u << 0;
constexpr uint64_t kParity = 1u << 2;
constexpr uint64_t kZero = 1u << 6;
constexpr uint64_t kSign = 1u << 7;
constexpr uint64_t kOverflow = 1u << 11;

uint64_t lowest(uint64_t value, uint32_t width) {
    return width >= 8 ? value : value & ((uint64_t{1} << 8 * width) - 1);
}

uint64_t sign_of(uint32_t width) { return uint64_t{1} << (8 * width - 1); }

uint64_t extended(uint64_t value, uint32_t width) {
    const uint64_t sign = sign_of(width);
    return width >= 8 ? value : (value ^ sign) - sign;
}

}  // namespace

uint64_t register_value(const long long* registers, uint8_t number, uint64_t next_pc) {
    if (number == kNoRegister) return 0;
    if (number == decoder::kPc) return next_pc;
    return static_cast<uint64_t>(registers[kPlaces[number]]);
}

uint32_t read_code(uint64_t pc, uint8_t* to, uint32_t most) {
    const auto* from = reinterpret_cast<const void*>(pc);
    if (safe_read::copy(to, from, most)) return most;
    const auto in_page = static_cast<uint32_t>(kPage - pc % kPage);
    return in_page < most && safe_read::copy(to, from, in_page) ? in_page : 0;
}

CodeWalk::CodeWalk(const long long* registers, Loads loads)
    : pc_(static_cast<uint64_t>(registers[REG_RIP])),
      flags_(static_cast<uint64_t>(registers[REG_EFL])),
      all_changed_(loads == Loads::none) {
    for (uint8_t number = 0; number < 16; ++number)
        values_[number] = register_value(registers, number, 0);
}

bool CodeWalk::decode(Instruction* out) const {
    uint8_t code[kLongest];
    const uint32_t size = read_code(pc_, code, sizeof code);
    return size != 0 && decoder::decode(code, size, out);
}

bool CodeWalk::compute(const Memory& memory, uint64_t next_pc, uint64_t* address) const {
    uint64_t sum = static_cast<uint64_t>(memory.displacement);
    for (const uint8_t number : {memory.base, memory.index}) {
        if (number == kNoRegister) continue;
        if (number != decoder::kPc && (known_ >> number & 1) == 0) return false;
    }
    if (memory.base != kNoRegister)
        sum += memory.base == decoder::kPc ? next_pc : values_[memory.base];
    if (memory.index != kNoRegister) sum += values_[memory.index] * memory.scale;
    *address = memory.narrow ? sum & 0xFFFFFFFFu : sum;
    return true;
}

bool CodeWalk::address_of(const Instruction& instruction, uint64_t* address) const {
    return compute(instruction.memory, pc_ + instruction.length, address);
}

bool CodeWalk::load(uint64_t address, uint32_t size, uint64_t* value) const {
    if (all_changed_ || size > sizeof *value) return false;
    for (uint32_t at = 0; at < store_count_; ++at)
        if (stores_[at].begin < address + size && address < stores_[at].end) return false;
    *value = 0;
    return safe_read::copy(value, reinterpret_cast<const void*>(address), size);
}

bool CodeWalk::value_of(const Operand& operand, const Instruction& instruction,
                        uint64_t* value) const {
    uint64_t address = 0;
    switch (operand.kind) {
        case Operand::Kind::general:
            *value = lowest(values_[operand.number], operand.width);
            return (known_ >> operand.number & 1) != 0;
        case Operand::Kind::immediate:
            *value = lowest(operand.value, operand.width);
            return true;
        case Operand::Kind::memory:
            return instruction.memory.width == operand.width && address_of(instruction, &address) &&
                   load(address, operand.width, value);
        case Operand::Kind::none:
            break;
    }
    return false;
}

void CodeWalk::set_flags(Operation operation, const uint64_t (&of)[2], uint64_t result,
                         uint32_t width) {
    const uint64_t sign = sign_of(width);
    uint64_t flags = 0;
    if (result == 0) flags |= kZero;
    if ((result & sign) != 0) flags |= kSign;
    if (__builtin_parityll(result & 0xFF) == 0) flags |= kParity;
    if (operation == Operation::add) {
        if (result < of[0]) flags |= kCarry;
        if ((~(of[0] ^ of[1]) & (of[0] ^ result) & sign) != 0) flags |= kOverflow;
    } else if (operation == Operation::subtract || operation == Operation::compare) {
        if (of[0] < of[1]) flags |= kCarry;
        if (((of[0] ^ of[1]) & (of[0] ^ result) & sign) != 0) flags |= kOverflow;
    }
    flags_ = flags;
    flags_known_ = true;
}

bool CodeWalk::result_of(const Instruction& instruction, uint64_t* result) {
    const Operation operation = instruction.operation;
    const Operand& first = instruction.first;
    const Operand& second = instruction.second;
    uint64_t of[2] = {};
    if (operation == Operation::other) return false;
    if (operation == Operation::address)
        return compute(instruction.computed, pc_ + instruction.length, result);
    if (operation == Operation::move || operation == Operation::move_signed) {
        if (!value_of(second, instruction, result)) return false;
        if (operation == Operation::move_signed) *result = extended(*result, second.width);
        return true;
    }
    // A register less itself is 0, whatever it was.
    const bool same = first.kind == Operand::Kind::general && second.kind == first.kind &&
                      first.number == second.number;
    const bool nothing =
        same && (operation == Operation::differ || operation == Operation::subtract);
    if (!nothing &&
        (!value_of(first, instruction, &of[0]) || !value_of(second, instruction, &of[1])))
        return false;
    switch (operation) {
        case Operation::add:
            *result = of[0] + of[1];
            break;
        case Operation::subtract:
        case Operation::compare:
            *result = of[0] - of[1];
            break;
        case Operation::conjoin:
        case Operation::test:
            *result = of[0] & of[1];
            break;
        case Operation::disjoin:
            *result = of[0] | of[1];
            break;
        default:
            *result = of[0] ^ of[1];
            break;
    }
    *result = lowest(*result, first.width);
    set_flags(operation, of, *result, first.width);
    return true;
}

void CodeWalk::assign(const Operand& to, uint64_t value) {
    if (to.kind != Operand::Kind::general) return;
    uint64_t& held = values_[to.number];
    if (to.width >= 4) {  // the upper half becomes 0
        held = lowest(value, to.width);
        known_ |= 1u << to.number;
    } else {
        const uint64_t kept = lowest(~uint64_t{0}, to.width);
        held = (held & ~kept) | (value & kept);
    }
}

void CodeWalk::remember_store(const Instruction& instruction) {
    const Memory& memory = instruction.memory;
    uint64_t address = 0;
    if (!instruction.stores) return;
    if (memory.width == 0 || !memory.writes || store_count_ == kMostStores ||
        !address_of(instruction, &address)) {
        all_changed_ = true;
        return;
    }
    stores_[store_count_++] = {address, address + memory.width};
}

bool CodeWalk::meets(uint8_t condition) const {
    const bool sign_differs = ((flags_ & kSign) != 0) != ((flags_ & kOverflow) != 0);
    const bool of[8] = {(flags_ & kOverflow) != 0,
                        (flags_ & kCarry) != 0,
                        (flags_ & kZero) != 0,
                        (flags_ & (kCarry | kZero)) != 0,
                        (flags_ & kSign) != 0,
                        (flags_ & kParity) != 0,
                        sign_differs,
                        sign_differs || (flags_ & kZero) != 0};
    return of[condition >> 1 & 7] != ((condition & 1) != 0);
}

bool CodeWalk::step(const Instruction& instruction) {
    const uint64_t next_pc = pc_ + instruction.length;
    if (instruction.flow == decoder::Flow::leaves) return false;
    if (instruction.flow != decoder::Flow::next) {
        const bool conditional = instruction.flow == decoder::Flow::branch;
        if (conditional && !flags_known_) return false;
        const bool jumps = !conditional || meets(instruction.condition);
        pc_ = jumps ? next_pc + static_cast<uint64_t>(instruction.target) : next_pc;
        return true;
    }
    if (instruction.changes_flags) flags_known_ = false;
    uint64_t result = 0;
    const bool computed = result_of(instruction, &result);
    const bool was_known = instruction.first.kind == Operand::Kind::general &&
                           (known_ >> instruction.first.number & 1) != 0;
    remember_store(instruction);
    known_ &= ~instruction.changes;
    const bool compares =
        instruction.operation == Operation::compare || instruction.operation == Operation::test;
    if (computed && !compares) {
        if (was_known) known_ |= 1u << instruction.first.number;
        assign(instruction.first, result);
    }
    pc_ = next_pc;
    return true;
}

}  // namespace tachograph
