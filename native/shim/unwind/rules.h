// How to get from a frame to its caller at one program counter: what a row of .eh_frame says,
// reduced to what the ABI's callers need, in 64 bits.
#pragma once

#include "arch/registers.h"

#include <cstdint>

namespace tachograph::unwind {

using arch::kFrame;
using arch::kOther;
using arch::kPc;
using arch::kPreserved;
using arch::kRegisters;
using arch::kStack;

enum class Step : uint8_t {
    none,    // there is no row, or none of a kind that is known here
    offset,  // CFA = register + offset
    deref,   // CFA = *(register + displacement) + offset: a realigned stack
    root,    // the return address is undefined: the thread's first frame
    signal,  // a signal handler's return: the kernel's ucontext_t lies at the stack pointer
};

// Where the caller's value of a register is.
enum class Saved : uint8_t { same, at_cfa, at_frame, unknown };

struct Save {
    Saved where = Saved::same;
    int32_t offset = 0;  // from the CFA, or from this frame's frame pointer; a multiple of 8
};

struct Rule {
    Step step = Step::none;
    uint8_t base = 0;  // register
    int32_t displacement = 0;
    int32_t offset = 0;
    Save frame;
    Save other;
    bool after_call = false;  // the instruction before the program counter is a call
    bool switches = false;    // the code exchanges stacks: see images.h
    // So many words right below the return address hold registers that calls preserve.
    uint8_t pushed = 0;
};

// What `pushed` has three bits for.
inline constexpr uint8_t kMostPushed = 6;

namespace packing {

inline constexpr int kOffsetBits = 23;
inline constexpr int kSmallBits = 7;
inline constexpr int kDisplacementBits = 16;
inline constexpr int kSaveBits = 12;
inline constexpr int kFarBits = 25;

constexpr bool fits(int64_t value, int bits) {
    return value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1);
}
constexpr uint64_t put(int64_t value, int bits, int at) {
    return (static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1)) << at;
}
constexpr int32_t take(uint64_t word, int bits, int at) {
    return static_cast<int32_t>(static_cast<int64_t>(word << (64 - bits - at)) >> (64 - bits));
}
constexpr uint64_t put(const Save& save, int at) {
    return static_cast<uint64_t>(save.where) << at | put(save.offset / 8, kSaveBits, at + 2);
}
constexpr Save take_save(uint64_t word, int at) {
    return {static_cast<Saved>(word >> at & 3), take(word, kSaveBits, at + 2) * 8};
}
constexpr Save reduced(const Save& save) {
    return save.offset % 8 == 0 && fits(save.offset / 8, kSaveBits) ? save
                                                                    : Save{Saved::unknown, 0};
}

// On aarch64 a frame's record of frame pointer and return address lies below its variables, however
// large they are. That both are there takes less to say than where each is: an unknown frame
// pointer, whose offset is otherwise 0.
constexpr bool is_far_record(const Rule& rule) {
    return rule.frame.where == Saved::at_cfa && rule.other.where == Saved::at_cfa &&
           rule.other.offset == rule.frame.offset + 8 && rule.frame.offset % 8 == 0 &&
           !fits(rule.frame.offset / 8, kSaveBits) && fits(rule.frame.offset / 8, kFarBits);
}
constexpr uint64_t kFarRecord = static_cast<uint64_t>(Saved::unknown) << 32 | uint64_t{1} << 34;
constexpr uint64_t put_saves(const Rule& rule) {
    return is_far_record(rule) ? kFarRecord | put(rule.frame.offset / 8, kFarBits, 35)
                               : put(reduced(rule.frame), 32) | put(reduced(rule.other), 46);
}
constexpr void take_saves(uint64_t word, Rule* rule) {
    if ((word & uint64_t{7} << 32) == kFarRecord) {
        const int32_t at = take(word, kFarBits, 35) * 8;
        rule->frame = {Saved::at_cfa, at};
        rule->other = {Saved::at_cfa, at + 8};
        return;
    }
    rule->frame = take_save(word, 32);
    rule->other = take_save(word, 46);
}

}  // namespace packing

// Where the CFA does not fit, there is no step; where a saved register does not, it is unknown.
constexpr uint64_t pack(Rule rule) {
    using namespace packing;
    const bool fitting = rule.step == Step::deref ? fits(rule.displacement, kDisplacementBits) &&
                                                        fits(rule.offset, kSmallBits)
                                                  : fits(rule.offset, kOffsetBits);
    if (!fitting) rule.step = Step::none;
    const uint64_t cfa = rule.step == Step::deref ? put(rule.displacement, kDisplacementBits, 8) |
                                                        put(rule.offset, kSmallBits, 24)
                                                  : put(rule.offset, kOffsetBits, 8);
    return static_cast<uint64_t>(rule.step) | static_cast<uint64_t>(rule.base & 15) << 3 |
           static_cast<uint64_t>(rule.base >> 4 & 1) << 63 |
           static_cast<uint64_t>(rule.after_call) << 7 | cfa |
           static_cast<uint64_t>(rule.switches) << 31 | put_saves(rule) |
           static_cast<uint64_t>(rule.pushed & 7) << 60;
}

constexpr Rule unpack(uint64_t word) {
    using namespace packing;
    Rule rule;
    rule.step = static_cast<Step>(word & 7);
    rule.base = static_cast<uint8_t>((word >> 3 & 15) | (word >> 63) << 4);
    rule.after_call = (word >> 7 & 1) != 0;
    rule.switches = (word >> 31 & 1) != 0;
    if (rule.step == Step::deref) {
        rule.displacement = take(word, kDisplacementBits, 8);
        rule.offset = take(word, kSmallBits, 24);
    } else {
        rule.offset = take(word, kOffsetBits, 8);
    }
    take_saves(word, &rule);
    rule.pushed = word >> 60 & 7;
    return rule;
}

}  // namespace tachograph::unwind
