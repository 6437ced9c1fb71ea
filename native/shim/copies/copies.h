// Copies of memory: every one of a size that matters is counted, some are seen with their stack.
#pragma once

#include "memory/heap.h"

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

// Draws the bytes until the thread's next row.
void begin(heap::Counters* counters);
// Before a pause what is not told yet is told; after it, what was copied meanwhile is forgotten.
void pause(heap::Counters* counters, bool yes);
// The remainder of a thread that ends, which no row has told yet.
void finish(heap::Counters* counters);
// The recorder's own thread: keeps the number of rows bounded.
void tick(int64_t now_ns);

}  // namespace tachograph::copies
