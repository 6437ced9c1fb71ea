// The recorder's one thread in the program: prepares segments, samples waiting, reads mappings.
//
// It has its own file descriptor table, so that descriptors it opens never take a number that the
// program is about to get; where the kernel refuses such a table, there is no helper. It blocks all
// signals except faults. Where CPython counts threads after a fork and warns, it stops before.
#pragma once

#include <cstdint>

namespace tachograph::helper {

constexpr int64_t kStopLimitNs = 500'000'000;

// Where there can be no helper, that is counted, and the program is recorded without it. Its first
// tick is when the next one of the helper before it was due: a program that forks all the time does
// not pay for one at each fork. In a new child it is after 20 ms, or when the first segment is half
// full: most children end before.
void start(bool in_new_child = false);
// Where the process ends, and the helper has not begun to work: it never will, and need not be
// waited for. False: it works, or there is none.
bool call_off();
// Keeps a helper that has not begun to work from it until `give_back`: the calling thread does what
// the helper would have done. False: it works, or there is none.
bool borrow();
void give_back();
// Before a fork: keeps it from its work, between whose steps it is, until `release`, which does
// nothing in a thread that does not hold it. False: it works, or there is none. A child, which has
// no helper, calls `forget`.
bool hold();
void release();
// Stops the helper and waits until its thread has ended, but no longer than `patience_ns`.
void stop(int64_t patience_ns = kStopLimitNs);
// Wakes it early, to write ends of children (child_ends.h). Async-signal-safe.
void wake();
// Replaces the helper, if there is one, by a thread that the calling thread creates, and that so
// has the rights of the calling thread.
void start_anew();
// Whether its thread still runs after `stop`: it most likely waits for a disk.
bool is_there();
// In a forked child, which has no helper yet: resets its state.
void forget();
// Its thread id, 0 while it does not run.
int tid();

}  // namespace tachograph::helper
