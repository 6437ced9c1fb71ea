// The process's footprint: whenever it has moved by the threshold, a row of `memory` says by how
// much, exactly, and on whose stack (Scalene 2023, section 3.2).
#pragma once

#include "memory/counters.h"

namespace tachograph::footprint {

bool open(int64_t threshold);

// The counters of slot `index`, and those of threads without a slot.
heap::Counters* counters(uint32_t index);
void count_outside(int domain, int64_t allocated, int64_t freed);

// Adds what a thread has not told yet to the process's total, if it is worth it or `all` is wanted.
// True if a row is due.
bool publish(heap::Counters* counters, bool all);

// Whether a row is due.
bool due();
// The process's resident set as the kernel has it; -1: not known.
int64_t resident_bytes();
// Writes the row that is due, unless another thread is at it or rows come too fast.
void cross(heap::Counters* counters, const void* caller);
// While the thread may still be in the line of its last row: looks where it is now.
void look(heap::Counters* counters);
bool looking(const heap::Counters* counters);

// In a forked child, before the threads are forgotten: the counters of all of them are its own from
// now on, and no thread's. Then, when it has a spool: its first row.
void inherit();
void begin_again();

// The process is not recorded any more, and no thread counts.
void forget();

// Rows of no thread: the first, one of the recorder's own thread, the last.
void begin(int64_t small, bool known);
// Now and then, if what is held or what is resident has moved: `tick` is due.
bool tick_due(int64_t now_ns);
void tick();
void mark();  // a row now, whatever has moved
void finish();

}  // namespace tachograph::footprint
