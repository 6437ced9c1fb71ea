// For functions that stand in front of libc's: how they are seen, and the ones behind them.
#pragma once

#include <dlfcn.h>

#define TG_EXPORT extern "C" __attribute__((visibility("default")))

namespace tachograph {

// Looked up by the first call that needs it; kept in `place`.
template <typename F>
F next_function(F* place, const char* name) {
    if (!*place) *place = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
    return *place;
}

}  // namespace tachograph
