// The time, in nanoseconds.
#pragma once

#include <time.h>
#include <cstdint>

namespace tachograph {

inline int64_t read_clock(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

inline int64_t now() { return read_clock(CLOCK_MONOTONIC); }

}  // namespace tachograph
