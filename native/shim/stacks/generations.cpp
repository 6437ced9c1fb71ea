#include "stacks/generations.h"

#include <atomic>

namespace tachograph::generations {
namespace {

struct State {
    std::atomic<uint32_t> present{0};
    std::atomic<uint32_t> pins[kPlaces] = {};
};
constinit State g;

// The place that the calling thread has pinned + 1.
__thread uint32_t t_pinned __attribute__((tls_model("initial-exec"))) = 0;

uint32_t acquire() {
    for (;;) {
        const uint32_t place = g.present.load(std::memory_order_seq_cst);
        g.pins[place].fetch_add(1, std::memory_order_seq_cst);
        // It may have been left before we were counted.
        if (g.present.load(std::memory_order_seq_cst) == place) return place;
        g.pins[place].fetch_sub(1, std::memory_order_release);
    }
}

}  // namespace

// A handler that comes in between finds nothing pinned, and leaves it so.
bool pin() {
    if (t_pinned != 0) return false;
    const uint32_t place = acquire();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_pinned = place + 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return true;
}

void unpin() {
    const uint32_t place = t_pinned - 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_pinned = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    g.pins[place].fetch_sub(1, std::memory_order_release);
}

uint32_t place() {
    return t_pinned != 0 ? t_pinned - 1 : g.present.load(std::memory_order_acquire);
}

uint32_t present() { return g.present.load(std::memory_order_relaxed); }

void change(uint32_t place) { g.present.store(place, std::memory_order_seq_cst); }

bool is_pinned(uint32_t place) { return g.pins[place].load(std::memory_order_seq_cst) != 0; }

void forget() {
    // Both are emptied by their owners; the ids of a new process begin anew.
    for (auto& pins : g.pins) pins.store(0);
    g.present.store(0);
    t_pinned = 0;
}

}  // namespace tachograph::generations
