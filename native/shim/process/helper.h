// The recorder's one thread in the program: prepares segments, samples waiting, reads mappings.
//
// It has its own file descriptor table, so that the descriptors it opens can never take a number
// that the program is about to get (where the kernel refuses one, there is no helper); it blocks
// every signal; and it stops before a fork, because CPython counts threads then and warns.
#pragma once

#include <cstdint>

namespace tachograph::helper {

constexpr int64_t kStopLimitNs = 500'000'000;

// Where it cannot be, that is counted, and the program is recorded without it.
void start();
// Asks it to end and waits until its thread is gone, so long at most.
void stop(int64_t patience_ns = kStopLimitNs);
// Ends of children wait for it (child_ends.h). Async-signal-safe.
void wake();
// Where there is one, another takes its place: a child of the calling thread, with its rights.
void start_anew();
// Whether its thread is there, though it was stopped: a disk holds it up, most likely.
bool is_there();
// In a forked child: it is the parent's.
void forget();
// Its thread id, 0 while it is not there.
int tid();

}  // namespace tachograph::helper
