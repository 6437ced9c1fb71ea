// Copies of memory: every one of a size that matters is counted, some are seen with their stack.
#pragma once

#include "memory/counters.h"

namespace tachograph::copies {

// Shorter ones cost more to count than to copy.
inline constexpr size_t kShortest = 512;

void count_slowly(heap::Counters* counters, size_t size, const void* caller);

inline void count(size_t size, const void* caller) {
    if (__builtin_expect(size < kShortest, 1)) return;
    heap::Counters* counters = heap::t_local.counters;
    if (!counters) return;
    heap::add(&counters->copied, static_cast<int64_t>(size));
    counters->copy_budget -= static_cast<int64_t>(size);
    if (__builtin_expect(counters->copy_budget < 0, 0)) count_slowly(counters, size, caller);
}

// A copy of `size` bytes holds one of the points that lie `mean` bytes apart (points.h) with some
// chance: the mean of independent gaps that would have given it the same one, as rows tell it. 1
// where it holds one for sure.
int64_t mean_of_independent(int64_t size, int64_t mean);

}  // namespace tachograph::copies
