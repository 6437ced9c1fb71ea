// A sum that a signal handler of the same thread may add to.
#pragma once

#include <cstdint>

namespace tachograph::arch {

// Whole for those who read it meanwhile, and for such a handler; other threads do not write it.
inline void add_in_place(int64_t* sum, int64_t more) {
    __atomic_fetch_add(sum, more, __ATOMIC_RELAXED);
}

}  // namespace tachograph::arch
