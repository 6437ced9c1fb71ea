// The registers by which a frame's caller is found, by DWARF's numbers (System V ABI, AMD64
// supplement, table 3.36), and how they are read.
#pragma once

#include <ucontext.h>
#include <cstddef>
#include <cstdint>

namespace tachograph::arch {

enum Register : uint8_t {
    kOther = 3,  // rbx: code that aligns its stack may keep the old pointer in it
    kFrame = 6,  // rbp
    kStack = 7,
    kFirstPreserved = 12,  // r12 to r15, which calls preserve as rbx and rbp
    kLastPreserved = 15,
    kReturnColumn = 16,  // of unwind rows
    kPc = 16,
    kRegisters = 17
};

// Calls push the return address: it lies below the CFA.
inline constexpr bool kReturnOnStack = true;

// The registers that calls preserve, but for the stack pointer.
inline constexpr uint8_t kPreserved[] = {kOther, kFrame, 12, 13, 14, 15};

// Return addresses are as they are.
inline uint64_t stripped(uint64_t address) { return address; }

// How far a register of the interrupted code is from the stack pointer when a handler returns to
// the code that ends it: there lies a ucontext_t.
inline constexpr uint8_t kOrder[kRegisters] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                               REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                               REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
constexpr uint64_t place_in_signal_frame(uint8_t number) {
    return offsetof(ucontext_t, uc_mcontext.gregs) + kOrder[number] * sizeof(greg_t);
}
// Unwind rows say what that code is.
inline bool ends_handlers(uint64_t) { return false; }

inline uint64_t value_of(const ucontext_t& interrupted, uint8_t number) {
    return static_cast<uint64_t>(interrupted.uc_mcontext.gregs[kOrder[number]]);
}

inline uint64_t pc_of(const ucontext_t& interrupted) {
    return static_cast<uint64_t>(interrupted.uc_mcontext.gregs[REG_RIP]);
}

inline void set_pc(ucontext_t* interrupted, uint64_t pc) {
    interrupted->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(pc);
}

// The calling function's own registers that calls preserve, in the order of kPreserved.
__attribute__((always_inline)) inline void keep_preserved(uint64_t (&to)[sizeof kPreserved]) {
    __asm__ volatile(
        "movq %%rbx, (%0)\n\t"
        "movq %%rbp, 8(%0)\n\t"
        "movq %%r12, 16(%0)\n\t"
        "movq %%r13, 24(%0)\n\t"
        "movq %%r14, 32(%0)\n\t"
        "movq %%r15, 40(%0)"
        :
        : "r"(to)
        : "memory");
}

// Where it is, and its stack pointer.
__attribute__((always_inline)) inline void keep_place(uint64_t* pc, uint64_t* sp) {
    __asm__ volatile(
        "leaq (%%rip), %0\n\t"
        "movq %%rsp, %1"
        : "=&r"(*pc), "=r"(*sp));
}

}  // namespace tachograph::arch
