// How the processor reads, adds to and copies memory where the compiler's own way is not safe.
#pragma once

#include <cstddef>
#include <cstdint>

// The instruction that loads a word of 32 bits (operand 1) into a register (operand 0).
#define TG_LOAD_32 "ldr %w0, %1"

namespace tachograph::arch {

// Whole for those who read it meanwhile, and for a signal handler of the same thread that adds to
// it as well; other threads do not write it.
inline void add_in_place(int64_t* sum, int64_t more) {
    __atomic_fetch_add(sum, more, __ATOMIC_RELAXED);
}

// Copies that call nothing, byte by byte: from the first one on, or from the last one back.
// Volatile, so that the compiler makes no call of memcpy of it.
inline void copy_up(void* to, const void* from, size_t size) {
    auto* at = static_cast<volatile uint8_t*>(to);
    const auto* source = static_cast<const uint8_t*>(from);
    for (size_t i = 0; i < size; ++i) at[i] = source[i];
}

inline void copy_down(void* to, const void* from, size_t size) {
    auto* at = static_cast<volatile uint8_t*>(to);
    const auto* source = static_cast<const uint8_t*>(from);
    for (size_t i = size; i-- > 0;) at[i] = source[i];
}

}  // namespace tachograph::arch
