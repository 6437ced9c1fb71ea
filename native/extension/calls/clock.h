// Clocks of watching.
#pragma once

#include "read_clock.h"

#include <cstdint>

namespace tachograph::calls {

// A moment: on the monotonic clock, and in CPU time of the process. How often a function is called
// is reckoned by the latter: where the machine is busy the program stands still for a part of the
// time, and most of all when no thread of it is there to begin an interval.
struct Moment {
    int64_t ns = 0;
    int64_t cpu_ns = 0;
};

using tachograph::now;
inline int64_t process_cpu() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }
inline int64_t thread_cpu() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

inline Moment moment(int64_t now_ns) { return {now_ns, process_cpu()}; }

}  // namespace tachograph::calls
