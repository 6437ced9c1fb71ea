// A lock that is not waited for without end: its holder may have been killed, or be what a signal
// handler has interrupted on this very thread.
#pragma once

#include "base/kernel.h"

#include <atomic>

namespace tachograph {

// Whether the lock is given back within the microsecond that most holders need. Where a thread asks
// only after it has given its processor away, it would hardly ever meet it free.
inline bool is_free_soon(const std::atomic_flag& lock) {
    for (int looks = 0; looks < 1000; ++looks)
        if (!lock.test(std::memory_order_relaxed)) return true;
    return false;
}

// Takes the lock; false if it gave up. `goes_on(tries)` says whether to try again after so many.
template <typename GoesOn>
bool acquire(std::atomic_flag& lock, GoesOn goes_on) {
    for (int tries = 1; lock.test_and_set(std::memory_order_acquire); ++tries) {
        if (!goes_on(tries)) return false;
        if (!is_free_soon(lock)) kernel::call(SYS_sched_yield);
    }
    return true;
}

// The same, after at most `most` tries.
inline bool acquire(std::atomic_flag& lock, int most) {
    return acquire(lock, [most](int tries) { return tries < most; });
}

// The same, until a time of the monotonic clock.
struct Until {
    int64_t ns;
};
inline bool acquire(std::atomic_flag& lock, Until end) {
    return acquire(lock, [end](int) { return kernel::monotonic_ns() < end.ns; });
}

inline void release(std::atomic_flag& lock) { lock.clear(std::memory_order_release); }

// Held until the end of a block, or not at all.
class BoundedLock {
  public:
    BoundedLock(std::atomic_flag& lock, int most) : lock_(lock), held_(acquire(lock, most)) {}
    BoundedLock(std::atomic_flag& lock, Until end) : lock_(lock), held_(acquire(lock, end)) {}
    ~BoundedLock() {
        if (held_) release(lock_);
    }
    BoundedLock(const BoundedLock&) = delete;
    BoundedLock& operator=(const BoundedLock&) = delete;
    explicit operator bool() const { return held_; }

  private:
    std::atomic_flag& lock_;
    bool held_;
};

}  // namespace tachograph
