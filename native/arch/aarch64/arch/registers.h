// The registers by which a frame's caller is found, by DWARF's numbers (DWARF for the Arm 64-bit
// Architecture, section 4.1), and how they are read.
#pragma once

#include <ucontext.h>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tachograph::arch {

enum Register : uint8_t {
    kFirstPreserved = 19,  // x19 to x28, which calls preserve as the frame pointer
    kLastPreserved = 28,
    kFrame = 29,
    kOther = 30,  // the link register, in which calls leave the return address
    kStack = 31,
    kReturnColumn = 30,  // of unwind rows
    kPc = 32,
    kRegisters = 33
};

// Calls leave the return address in a register, and functions that call keep it.
inline constexpr bool kReturnOnStack = false;

// The registers that calls preserve, but for the stack pointer.
inline constexpr uint8_t kPreserved[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, kFrame};

// A return address without the code by which it is authenticated.
inline uint64_t stripped(uint64_t address) {
    register uint64_t link __asm__("x30") = address;
    __asm__("hint #7" : "+r"(link));  // xpaclri, which older processors take for nothing
    return link;
}

// How far a register of the interrupted code is from the stack pointer when a handler returns to
// the code that ends it: the kernel has put a siginfo_t and a ucontext_t there.
constexpr uint64_t place_in_signal_frame(uint8_t number) {
    return sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.regs) + number * sizeof(uint64_t);
}

// Whether that code begins here: it has no unwind rows that are to be trusted, and is known by its
// instructions.
inline bool ends_handlers(uint64_t word) {
    return word == 0xD4000001D2801168;  // mov x8, #139 (rt_sigreturn); svc #0
}

inline uint64_t value_of(const ucontext_t& interrupted, uint8_t number) {
    const mcontext_t& machine = interrupted.uc_mcontext;
    return number == kPc ? machine.pc : number == kStack ? machine.sp : machine.regs[number];
}

inline uint64_t pc_of(const ucontext_t& interrupted) { return interrupted.uc_mcontext.pc; }

inline void set_pc(ucontext_t* interrupted, uint64_t pc) { interrupted->uc_mcontext.pc = pc; }

// The calling function's own registers that calls preserve, in the order of kPreserved.
__attribute__((always_inline)) inline void keep_preserved(uint64_t (&to)[sizeof kPreserved]) {
    __asm__ volatile(
        "stp x19, x20, [%0]\n\t"
        "stp x21, x22, [%0, #16]\n\t"
        "stp x23, x24, [%0, #32]\n\t"
        "stp x25, x26, [%0, #48]\n\t"
        "stp x27, x28, [%0, #64]\n\t"
        "str x29, [%0, #80]"
        :
        : "r"(to)
        : "memory");
}

// Where it is, and its stack pointer.
__attribute__((always_inline)) inline void keep_place(uint64_t* pc, uint64_t* sp) {
    __asm__ volatile(
        "adr %0, .\n\t"
        "mov %1, sp"
        : "=&r"(*pc), "=r"(*sp));
}

}  // namespace tachograph::arch
