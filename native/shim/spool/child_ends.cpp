#include "spool/child_ends.h"

#include "base/kernel.h"
#include "base/large_data.h"
#include "base/sandbox.h"
#include "spool/settings.h"

#include <atomic>

namespace tachograph::child_ends {
namespace {

using process_log::ChildEnd;

constexpr uint32_t kPlaces = 256;

enum : int { kFree, kBusy, kReady };

struct Place {
    std::atomic<int> state{kFree};
    int32_t owner = 0;  // a forked child has a copy of what its parent waits to write
    ChildEnd end{};
};

struct State {
    Place places[kPlaces];
    std::atomic<int> waiting{0};   // the process for which something waits
    std::atomic<int> threaded{0};  // the process that has made a thread
};
constinit TG_LARGE_ZEROS State g;

bool take(Place* place, int32_t own) {
    int expected = kFree;
    if (place->state.compare_exchange_strong(expected, kBusy)) return true;
    return expected == kReady && place->owner != own &&
           place->state.compare_exchange_strong(expected, kBusy);
}

bool keep(const ChildEnd& end, int32_t own) {
    for (Place& place : g.places) {
        if (!take(&place, own)) continue;
        place.owner = own;
        place.end = end;
        place.state.store(kReady, std::memory_order_release);
        g.waiting.store(own, std::memory_order_release);
        return true;
    }
    return false;
}

}  // namespace

bool wanted() {
    return process_log::reachable() && settings::pass_to_children() && !sandbox::entered();
}

bool note(const ChildEnd& end, bool aside) {
    const int32_t own = kernel::getpid();
    if (aside || g.threaded.load(std::memory_order_relaxed) == own) return keep(end, own);
    process_log::reaped(end);
    return true;
}

void made_thread() {
    // A sandbox may forbid the call, and nothing is noted in one.
    if (!sandbox::entered()) g.threaded.store(kernel::getpid(), std::memory_order_relaxed);
}

bool any_waits() { return g.waiting.load(std::memory_order_acquire) == kernel::getpid(); }

void flush() {
    if (g.waiting.load(std::memory_order_acquire) == 0 || !wanted()) return;
    // In a vfork child all of this is its parent's.
    int own = kernel::getpid();
    if (!g.waiting.compare_exchange_strong(own, 0)) return;
    for (Place& place : g.places) {
        if (place.state.load(std::memory_order_acquire) != kReady || place.owner != own) continue;
        int expected = kReady;
        if (!place.state.compare_exchange_strong(expected, kBusy)) continue;
        const ChildEnd end = place.end;
        place.state.store(kFree, std::memory_order_release);
        process_log::reaped(end);
    }
}

}  // namespace tachograph::child_ends
