// The time, in nanoseconds.
#pragma once

#include "tachograph/vdso_clock.h"

#include <cstdint>
#include <ctime>

namespace tachograph {

inline int64_t read_clock(clockid_t clock) { return vdso_clock::read_ns(clock); }

inline int64_t now() { return read_clock(CLOCK_MONOTONIC); }

}  // namespace tachograph
