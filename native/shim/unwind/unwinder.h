// The native call path of the calling thread, from given registers out to the thread's first frame.
#pragma once

#include "unwind/rules.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::unwind {

// native_path of tables.toml
enum class Path : uint8_t {
    unrecorded,
    whole,      // unwind rows led to the thread's first frame
    guessed,    // likewise, but for steps out of code without rows, or whose rows build on a
                // register that is not known
    truncated,  // the inner part: deeper than there was room, or it came to code that hides its
                // caller
    torn,       // the inner part: what came after it contradicts itself
};

// Indexed by DWARF's numbers; of a caller only what the ABI keeps is known.
struct Registers {
    uint64_t values[kRegisters] = {};
    uint64_t known = 0;  // bits

    bool has(uint8_t number) const { return (known >> number & 1) != 0; }
    void set(uint8_t number, uint64_t value) {
        values[number] = value;
        known |= uint64_t{1} << number;
    }
    void forget(uint8_t number) { known &= ~(uint64_t{1} << number); }
};

// All of an interrupted thread's.
Registers registers_of(const ucontext_t& interrupted);

// The caller's own, as far as a function preserves them; always its own, for there is no frame to
// come back to.
__attribute__((always_inline)) inline Registers registers_here() {
    uint64_t preserved[sizeof kPreserved];
    uint64_t pc;
    uint64_t sp;
    arch::keep_preserved(preserved);
    arch::keep_place(&pc, &sp);
    Registers registers;
    for (size_t i = 0; i < sizeof kPreserved; ++i) registers.set(kPreserved[i], preserved[i]);
    registers.set(kStack, sp);
    registers.set(kPc, pc);
    return registers;
}

// `pc` lies in the instruction that the frame is at: the interrupted one, or the call (its last
// byte). The frame occupies the stack from `sp` to below `cfa`; 0: its end is not known. `pushed`:
// see rules.h.
struct Frame {
    uint64_t pc;
    uint64_t sp;
    uint64_t cfa;
    uint8_t pushed;
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

// Walks on the stack of another thread, which may be running, out of the frame that an address lies
// in, to the thread's first frame. The first frame taken is the one that this frame has called, if
// it is in a call itself. Where what lies at the address is in use, these frames stay as they are.
// False if there are no unwind rows that lead all the way.
bool walk_around(uint64_t address, Frame* frames, uint32_t room, uint32_t* count);

}  // namespace tachograph::unwind
