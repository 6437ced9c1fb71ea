// Copies that call nothing, byte by byte: from the first one on, or from the last one back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::arch {

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
