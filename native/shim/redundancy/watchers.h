// The threads that have watchpoints: a few at a time, each with some watches, and one watchpoint
// that tells when its innermost Python frame goes on.
#pragma once

#include "redundancy/trap_budget.h"
#include "redundancy/watch.h"
#include "stacks/threads.h"

#include <sys/types.h>
#include <atomic>
#include <cstdint>

namespace tachograph::redundancy {

inline constexpr uint32_t kMostWatchers = 32;
inline constexpr uint32_t kMostWatches = 3;
inline constexpr uint32_t kMostFollowed = 4;

struct Watcher {
    std::atomic<pid_t> tid{0};      // 0: free
    std::atomic<bool> busy{false};  // its thread is in a handler of ours: what traps is our doing
    threads::Thread* thread = nullptr;
    uint32_t watches_open = 0;
    Watch watches[kMostWatches];
    Followed followed[kMostFollowed];
    std::atomic<uint32_t> next_followed{0};  // the one that has waited longest
    Watchpoint progress;                     // on `frame`
    uint64_t frame = 0;
    uint64_t random = 0;
    Account account;
};

namespace watchers {

// A trap's data that is ours, and no watcher's.
inline constexpr uint64_t kTrial = 0x54414348FFFFFFFF;

// The calling thread's, with its watchpoints opened at the first call. nullptr: there is none for
// it, which is counted once for each thread.
Watcher* own(threads::Thread* thread);
// The calling thread's, if it has one.
Watcher* known();
// That and the watch which a trap's data names (kMostWatches: the frame's progress), if they are
// the calling thread's. If not, what has trapped is disarmed.
bool of_trap(uint64_t data, Watcher** watcher, uint32_t* watch);
// Whether a trap's data is of a watchpoint of ours at all.
bool is_ours(uint64_t data);

// Ends all watches of one, or of all; those that are in a handler at this moment are left alone,
// which is told by false.
bool end_all(Watcher* watcher, Outcome outcome);
bool end_all(Outcome outcome);
// Ends the watches of a block that is given back, and looks whether it holds the same as one that
// was in its place before.
void end_released(uint64_t address, uint64_t size);
// The calling thread has its watchpoints no longer.
void leave();
// A thread that has ended, or is watched no longer; told by any thread, perhaps one that does not
// share its descriptors. They are closed when another thread needs the place.
void abandon(const threads::Thread* thread);
// Closes all watchpoints, if the calling thread shares their descriptors.
void close_all();
// In a forked child: the watchpoints are the parent's.
void forget();

}  // namespace watchers
}  // namespace tachograph::redundancy
