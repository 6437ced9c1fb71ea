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

// A gap of exponential length.
uint64_t draw(uint64_t* random, int64_t mean);

}  // namespace tachograph::copies
