// How the processor reads, adds to and copies memory where the compiler's own way is not safe.
#pragma once

#include <sys/auxv.h>
#include <atomic>
#include <cstddef>
#include <cstdint>

// The instruction that loads a word of 32 bits (operand 1) into a register (operand 0).
#define TG_LOAD_32 "ldr %w0, %1"

namespace tachograph::arch {

inline constinit std::atomic<uintptr_t> g_page_size{0};

// The kernel's: 4, 16 or 64 KiB. What the kernel told the process at its start is read, which calls
// nothing, so it may be asked for in signal handlers.
inline uintptr_t page_size() {
    const uintptr_t known = g_page_size.load(std::memory_order_relaxed);
    if (known != 0) return known;
    const uintptr_t size = getauxval(AT_PAGESZ);
    g_page_size.store(size, std::memory_order_relaxed);
    return size;
}

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
