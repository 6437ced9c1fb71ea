// How the processor reads, adds to and copies memory where the compiler's own way is not safe.
#pragma once

#include <cstddef>
#include <cstdint>

// The instruction that loads a word of 32 bits (operand 1) into a register (operand 0).
#define TG_LOAD_32 "movl %1, %0"

namespace tachograph::arch {

// All that programs have but huge ones.
constexpr uintptr_t page_size() { return 4096; }

// Whole for those who read it meanwhile, and for a signal handler of the same thread that adds to
// it as well; other threads do not write it.
inline void add_in_place(int64_t* sum, int64_t more) {
    __asm__ volatile("addq %1, %0" : "+m"(*sum) : "er"(more) : "cc");
}

// Copies that call nothing, byte by byte: from the first one on, or from the last one back.
inline void copy_up(void* to, const void* from, size_t size) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

inline void copy_down(void* to, const void* from, size_t size) {
    auto* last = static_cast<uint8_t*>(to) + size - 1;
    const auto* source = static_cast<const uint8_t*>(from) + size - 1;
    __asm__ volatile("std\n\trep movsb\n\tcld" : "+D"(last), "+S"(source), "+c"(size) : : "memory");
}

}  // namespace tachograph::arch
