// For functions that interpose libc's: how they are exported, and how the next ones are found.
#pragma once

#include "base/libc.h"

#include <gnu/libc-version.h>
#include <cstdlib>
#include <cstring>

#define TG_EXPORT extern "C" __attribute__((visibility("default")))

namespace tachograph {

// The system call, for those that make it by its number: the signals that the recorder stands
// before are set as by sigaction(). The result is the kernel's.
long raw_sigaction(long signal, long action, long old, long size);

// Whether libc's system() and popen() give the shell "--" before a command, which may then begin
// with a minus sign: since glibc 2.38.
inline bool shell_takes_dashes() {
    const char* version = gnu_get_libc_version();
    return atoi(version) > 2 || atoi(version + strcspn(version, ".") + 1) >= 38;
}

}  // namespace tachograph
