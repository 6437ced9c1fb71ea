// Copies that call nothing, byte by byte: from the first one on, or from the last one back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::arch {

inline void copy_up(void* to, const void* from, size_t size) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

inline void copy_down(void* to, const void* from, size_t size) {
    auto* last = static_cast<uint8_t*>(to) + size - 1;
    const auto* source = static_cast<const uint8_t*>(from) + size - 1;
    __asm__ volatile("std\n\trep movsb\n\tcld" : "+D"(last), "+S"(source), "+c"(size) : : "memory");
}

}  // namespace tachograph::arch
