// The native call path of the calling thread, from given registers out to the thread's first frame.
#pragma once

#include "unwind/rules.h"

#include <cstdint>

namespace tachograph::unwind {

// native_path of tables.toml
enum class Path : uint8_t {
    unrecorded,
    whole,      // unwind rows led to the thread's first frame
    guessed,    // likewise, but for steps out of code without rows
    truncated,  // the inner part: deeper than there was room, or it came to code that hides its
                // caller
    torn,       // the inner part: what came after it contradicts itself
};

// Indexed by DWARF's numbers; of a caller only what the ABI keeps is known.
struct Registers {
    uint64_t values[kRegisters] = {};
    uint32_t known = 0;  // bits

    bool has(uint8_t number) const { return (known >> number & 1) != 0; }
    void set(uint8_t number, uint64_t value) {
        values[number] = value;
        known |= 1u << number;
    }
    void forget(uint8_t number) { known &= ~(1u << number); }
};

// All of an interrupted thread's.
Registers registers_of(const long long* machine_registers);

// `pc` lies in the instruction that the frame is at: the interrupted one, or the call (its last
// byte). The frame occupies the stack from `sp` to below `cfa`; 0: its end is not known.
struct Frame {
    uint64_t pc;
    uint64_t sp;
    uint64_t cfa;
};

// Makes room for what is prepared and remembered. False if there is no memory.
bool open();

// In a forked child.
void forget();

// Walks, the innermost frame first. Safe in signal handlers: bounded, no allocation, no lock. At
// least one frame of `room` is filled. `unknown_code` is set if some program counter was in no
// known image.
Path walk(const Registers& start, Frame* frames, uint32_t room, uint32_t* count,
          bool* unknown_code);

}  // namespace tachograph::unwind
