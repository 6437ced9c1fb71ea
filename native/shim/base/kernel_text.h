// The kernel's texts, as those in /proc: reading a small one, and the numbers in it.
#pragma once

#include "base/kernel.h"

#include <fcntl.h>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tachograph {

// Reads the beginning of a file, what fits, and ends it with 0. Returns its length; 0 or a negative
// errno if there is none, and then `text` is empty.
inline long read_text(const char* path, char* text, size_t size) {
    text[0] = 0;
    const long fd = kernel::call(SYS_openat, AT_FDCWD, kernel::address(path), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fd;
    const long length =
        kernel::call(SYS_read, fd, kernel::address(text), static_cast<long>(size) - 1);
    kernel::call(SYS_close, fd);
    text[length > 0 ? length : 0] = 0;
    return length;
}

// The number that begins at `at`, 0 if none does; returns the place behind its last digit.
inline const char* read_decimal(const char* at, int64_t* value) {
    for (*value = 0; *at >= '0' && *at <= '9'; ++at) *value = *value * 10 + (*at - '0');
    return at;
}

// With zeros before it, if it has fewer digits than `least`. Returns the place behind the last one.
inline char* write_decimal(char* at, uint64_t value, size_t least = 1) {
    size_t digits = 1;
    for (uint64_t rest = value / 10; rest > 0; rest /= 10) ++digits;
    if (digits < least) digits = least;
    for (size_t digit = digits; digit > 0; value /= 10)
        at[--digit] = static_cast<char>('0' + value % 10);
    return at + digits;
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

// Whether this process has a tracer, such as a debugger.
inline bool is_traced() {
    char text[2048];
    read_text("/proc/self/status", text, sizeof text);
    const char* at = strstr(text, "TracerPid:");
    if (!at) return false;
    at += strcspn(at, "0123456789\n");
    return *at >= '1' && *at <= '9';
}

}  // namespace tachograph
