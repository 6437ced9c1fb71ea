// Follows code from where a thread was interrupted, as the thread itself is about to run it.
//
// Registers and flags are known at the beginning. Plain instructions are computed, so that a branch
// behind a comparison is followed, and an address that was loaded a moment before is known. What
// cannot be computed makes its results unknown, and the walk ends where the next instruction is.
#pragma once

#include "redundancy/decoder.h"

#include <cstdint>

namespace tachograph {

class CodeWalk {
  public:
    // Whether values are loaded from memory, as the thread would; such a load may meet a
    // watchpoint.
    enum class Loads { all, none };

    // `registers` are gregs of a ucontext, whose program counter is the next instruction to run.
    explicit CodeWalk(const long long* registers, Loads loads = Loads::all);

    uint64_t pc() const { return pc_; }
    // The instruction at `pc`. False: the bytes are none, or cannot be read.
    bool decode(decoder::Instruction* out) const;
    // Of what the instruction at `pc` accesses. False: a register that it needs is not known.
    bool address_of(const decoder::Instruction& instruction, uint64_t* address) const;
    // Runs that instruction. False: where the thread goes on is not known.
    bool step(const decoder::Instruction& instruction);

  private:
    struct Range {
        uint64_t begin;
        uint64_t end;
    };
    static constexpr uint32_t kMostStores = 8;

    bool compute(const decoder::Memory& memory, uint64_t next_pc, uint64_t* address) const;
    bool value_of(const decoder::Operand& operand, const decoder::Instruction& instruction,
                  uint64_t* value) const;
    bool load(uint64_t address, uint32_t size, uint64_t* value) const;
    // The result of its operation, and the flags.
    bool result_of(const decoder::Instruction& instruction, uint64_t* result);
    void set_flags(decoder::Operation operation, const uint64_t (&of)[2], uint64_t result,
                   uint32_t width);
    void assign(const decoder::Operand& to, uint64_t value);
    void remember_store(const decoder::Instruction& instruction);
    bool meets(uint8_t condition) const;

    uint64_t pc_;
    uint64_t values_[16];
    uint32_t known_ = 0xFFFF;  // general registers, as bits
    uint64_t flags_;
    bool flags_known_ = true;
    // Memory that has changed on the way: its old value is not the one that the thread will find.
    Range stores_[kMostStores];
    uint32_t store_count_ = 0;
    bool all_changed_;  // or nothing is loaded
};

// The value of a register in the machine's order (decoder.h) when a thread was interrupted.
uint64_t register_value(const long long* registers, uint8_t number, uint64_t next_pc);
// Up to `most` bytes from `pc` on, fewer where the next page cannot be read.
uint32_t read_code(uint64_t pc, uint8_t* to, uint32_t most);

}  // namespace tachograph
