// A pool of numbers below a limit, each of which has at most one holder: a LIFO free list.
//
// LIFO, so that of a large table only as many pages are touched as the most entries at one time
// need, and not, over time, all of them.
#pragma once

#include <atomic>
#include <cstdint>

namespace tachograph {

// Lock-free, and safe in signal handlers: a Treiber stack (1986) of the free numbers. The counter
// in its head solves the ABA problem.
template <uint32_t kMost>
class Numbers {
  public:
    static constexpr uint32_t kNoNumber = kMost;

    // kNoNumber: all are taken.
    uint32_t take() {
        uint64_t head = free_.load(std::memory_order_acquire);
        while (static_cast<uint32_t>(head) != 0) {
            const uint32_t number = static_cast<uint32_t>(head) - 1;
            const uint64_t next = next_[number].load(std::memory_order_relaxed);
            if (free_.compare_exchange_weak(head, visit_after(head) | next,
                                            std::memory_order_acq_rel, std::memory_order_acquire))
                return number;
        }
        uint32_t used = used_.load(std::memory_order_relaxed);
        while (used < kMost &&
               !used_.compare_exchange_weak(used, used + 1, std::memory_order_acq_rel)) {
        }
        return used;
    }

    void give(uint32_t number) {
        uint64_t head = free_.load(std::memory_order_relaxed);
        do {
            next_[number].store(static_cast<uint16_t>(head), std::memory_order_relaxed);
        } while (!free_.compare_exchange_weak(head, visit_after(head) | (number + 1),
                                              std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
    }

    // Those from here on were never given out.
    uint32_t used() const { return used_.load(std::memory_order_acquire); }

    // While no other thread uses them: all are free.
    void reset() {
        free_.store(0, std::memory_order_relaxed);
        used_.store(0, std::memory_order_relaxed);
    }

  private:
    static_assert(kMost < UINT16_MAX);
    static uint64_t visit_after(uint64_t head) { return ((head >> 32) + 1) << 32; }

    std::atomic<uint64_t> free_{0};  // visits << 32 | number + 1, 0: none was given back
    std::atomic<uint32_t> used_{0};
    std::atomic<uint16_t> next_[kMost] = {};  // number + 1
};

}  // namespace tachograph
