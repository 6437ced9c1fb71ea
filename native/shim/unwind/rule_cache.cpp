#include "unwind/rule_cache.h"

#include "spool/own_memory.h"
#include "tachograph/mixing.h"

#include <atomic>

namespace tachograph::unwind::rule_cache {
namespace {

constexpr int kPlaceBits = 12;
constexpr uint64_t kPlaces = 1u << kPlaceBits;

// Two threads may write one place at once: then the words do not belong together, which `check`
// shows (Hyatt and Mann, A lock-less transposition table implementation, 2002). The rule is
// scattered first, so that no difference of two rules is one of two keys.
struct Place {
    std::atomic<uint64_t> check;
    std::atomic<uint64_t> rule;
};
static_assert(sizeof(Place) == 16);

struct State {
    Place* places = nullptr;
};
constinit State g;

Place& place(const Key& key) {
    return g.places[(key.address * 0x9E3779B97F4A7C15ull) >> (64 - kPlaceBits)];
}

}  // namespace

bool open() { return g.places || own_memory::map(&g.places, sizeof(Place) * kPlaces); }

bool find(const Key& key, uint64_t* rule) {
    const Place& at = place(key);
    *rule = at.rule.load(std::memory_order_relaxed);
    return (at.check.load(std::memory_order_relaxed) ^ mix(*rule + 1)) == key.word();
}

void keep(const Key& key, uint64_t rule) {
    Place& at = place(key);
    at.rule.store(rule, std::memory_order_relaxed);
    at.check.store(key.word() ^ mix(rule + 1), std::memory_order_relaxed);
}

}  // namespace tachograph::unwind::rule_cache
