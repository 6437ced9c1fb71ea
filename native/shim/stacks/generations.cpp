#include "stacks/generations.h"

#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/contexts.h"
#include "stacks/native_contexts.h"
#include "stacks/sources.h"

#include <atomic>

namespace tachograph::generations {
namespace {

struct State {
    std::atomic<uint32_t> present{0};
    std::atomic<uint32_t> pins[kPlaces] = {};
    // Helper only.
    bool left = false;  // the other one is not emptied yet
    int64_t began_ns = 0;
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

struct Oldest {
    uint32_t stack;
    uint32_t code;
    uint32_t native_stack;
};

// A reader that misses it goes by the one before, and keeps more.
void write_generation(const Oldest& oldest) {
    const spool::Ticket ticket = spool::reserve(Kind::generation, sizeof(GenerationRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<GenerationRecord*>(ticket.record);
    record->oldest_stack = oldest.stack;
    record->oldest_code = oldest.code;
    record->oldest_native_stack = oldest.native_stack;
    spool::commit(ticket);
}

void empty(uint32_t place) {
    if (g.pins[place].load(std::memory_order_seq_cst) == 0 && contexts::clear(place) &&
        native_contexts::clear(place))
        g.left = false;
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

void maintain(int64_t now_ns, bool window_ends) {
    const uint32_t present = g.present.load(std::memory_order_relaxed);
    const uint32_t next = 1 - present;
    if (g.left) empty(next);
    const bool full = contexts::nearly_full(present) || native_contexts::nearly_full(present);
    if (g.left || !(full || window_ends) || (g.began_ns != 0 && now_ns - g.began_ns < kLeastNs))
        return;
    if (!contexts::may_follow(present, next) || !native_contexts::may_follow(present, next) ||
        !sources::keep())
        return;
    const Oldest oldest{contexts::first_stack(present), contexts::first_code(present),
                        native_contexts::first(present)};
    contexts::follow(present, next);
    native_contexts::follow(present, next);
    g.present.store(next, std::memory_order_seq_cst);
    g.left = true;
    g.began_ns = now_ns;
    write_generation(oldest);
}

void forget() {
    // Both are emptied by their owners; the ids of a new process begin anew.
    for (auto& pins : g.pins) pins.store(0);
    g.present.store(0);
    g.left = false;
    g.began_ns = 0;
    t_pinned = 0;
}

}  // namespace tachograph::generations
