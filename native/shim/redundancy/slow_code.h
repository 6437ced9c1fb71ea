// What a watchpoint costs while nothing traps: as long as one is armed, some code runs slowly.
// - An Intel Xeon takes 11 ns for each store that crosses a cache line, instead of 1: a sum of
//   arrays that do not begin with a line takes 2.5 times as long.
// - An AMD EPYC moves strings (rep movs, rep stos) one element at a time: a megabyte in 370 us
//   instead of 31. The C library copies and clears large blocks so, and the kernel clears pages and
//   copies what is read and written.
// Nothing tells of it, so the samples do: those that were taken meanwhile.
#pragma once

#include "stacks/sources.h"

#include <cstdint>

namespace tachograph::redundancy::slow_code {

// CPU ns of the calling thread for a string that is cleared, for pages that are touched for the
// first time, and for a store that crosses a cache line. Negative: not known.
struct Times {
    double string_ns = -1;
    double pages_ns = -1;
    double store_ns = -1;
};
Times measure();

// What is lost from now on: by measurements without a watchpoint that is armed, and with one.
void compare(const Times& without, const Times& with);

// CPU ns of a sample that would not have been spent if no watchpoint had been armed; on average.
// `paid_ns` of what it has in the kernel are our own traps.
int64_t lost_ns(const Sample& sample, int64_t paid_ns);

}  // namespace tachograph::redundancy::slow_code
