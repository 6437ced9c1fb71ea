// Numbers in the kernel's texts.
#pragma once

#include <cstdint>

namespace tachograph {

// The number that begins at `at`, 0 if none does; returns the place behind its last digit.
inline const char* read_decimal(const char* at, int64_t* value) {
    for (*value = 0; *at >= '0' && *at <= '9'; ++at) *value = *value * 10 + (*at - '0');
    return at;
}

inline const char* read_hexadecimal(const char* at, uint64_t* value) {
    for (*value = 0;; ++at) {
        const int digit = *at >= '0' && *at <= '9'   ? *at - '0'
                          : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10
                                                     : -1;
        if (digit < 0) return at;
        *value = *value << 4 | static_cast<uint64_t>(digit);
    }
}

}  // namespace tachograph
