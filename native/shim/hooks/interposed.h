// For functions that stand in front of libc's: how they are seen, and the ones behind them.
#pragma once

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <cstdlib>
#include <cstring>

#define TG_EXPORT extern "C" __attribute__((visibility("default")))

namespace tachograph {

// Looked up by the first call that needs it; kept in `place`.
template <typename F>
F next_function(F* place, const char* name) {
    if (!*place) *place = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
    return *place;
}

// Whether libc's system() and popen() give the shell "--" before a command, which may then begin
// with a minus sign: since glibc 2.38.
inline bool shell_takes_dashes() {
    const char* version = gnu_get_libc_version();
    return atoi(version) > 2 || atoi(version + strcspn(version, ".") + 1) >= 38;
}

}  // namespace tachograph
