#include "unwind/last_path.h"

#include "arch/processor.h"
#include "spool/own_memory.h"

#include <atomic>

namespace tachograph::unwind {
namespace last_path {

constexpr int kPlaceBits = 6;
constexpr uint64_t kPlaces = 1u << kPlaceBits;
static_assert(kPlaces == 64, "State::taken has a bit for each");
constexpr uint32_t kMost = 60;         // frames; of longer paths the inner ones
constexpr uint32_t kMostSearches = 8;  // a path that has nothing in common is soon given up

struct Entry {
    uint64_t key;
    uint64_t rule;
};

struct Rules {
    std::atomic_flag busy;
    uint32_t current;  // which of the two is the last walk's
    uint32_t counts[2];
    Entry entries[2][kMost];
};

namespace {

struct State {
    Rules* places = nullptr;
    std::atomic<uint64_t> taken{0};  // a bit for each place that a walk has ever had
};
constinit State g;

// By the thread pointer, which is a register.
Rules* own() {
    const auto thread = reinterpret_cast<uint64_t>(tg_thread_pointer());
    const uint64_t place = (thread >> 6) * 0x9E3779B97F4A7C15ull >> (64 - kPlaceBits);
    const uint64_t bit = uint64_t{1} << place;
    if ((g.taken.load(std::memory_order_relaxed) & bit) == 0)
        g.taken.fetch_or(bit, std::memory_order_relaxed);
    return &g.places[place];
}

}  // namespace

bool open() { return g.places || own_memory::map(&g.places, sizeof(Rules) * kPlaces); }

void forget() {
    // Of the others the pages are not there, and each look at one would be a page fault of the
    // child.
    for (uint64_t left = g.taken.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
        Rules& rules = g.places[__builtin_ctzll(left)];
        if (rules.busy.test(std::memory_order_relaxed)) rules.busy.clear();
    }
}

}  // namespace last_path

LastPath::LastPath() : rules_(last_path::own()) {
    if (rules_->busy.test_and_set(std::memory_order_acquire)) {
        rules_ = nullptr;
        return;
    }
    constexpr uint32_t kInALine = 64 / sizeof(last_path::Entry);
    const uint32_t current = rules_->current;
    for (uint32_t at = 0; at < rules_->counts[current]; at += kInALine)
        __builtin_prefetch(&rules_->entries[current][at]);
}

LastPath::~LastPath() {
    if (!rules_) return;
    rules_->current ^= 1;
    rules_->counts[rules_->current] = count_;
    rules_->busy.clear(std::memory_order_release);
}

bool LastPath::find(const rule_cache::Key& key, uint64_t* rule) {
    if (!rules_) return false;
    const last_path::Entry* last = rules_->entries[rules_->current];
    const uint32_t count = rules_->counts[rules_->current];
    const uint64_t word = key.word();
    uint32_t at = next_;
    if (at >= count) return false;
    if (last[at].key != word) {
        if (searches_ == last_path::kMostSearches) return false;
        while (++at < count && last[at].key != word) {
        }
        if (at == count) {
            ++searches_;
            return false;
        }
    }
    *rule = last[at].rule;
    next_ = at + 1;
    keep(key, *rule);
    return true;
}

void LastPath::keep(const rule_cache::Key& key, uint64_t rule) {
    if (!rules_ || count_ == last_path::kMost) return;
    rules_->entries[rules_->current ^ 1][count_++] = {key.word(), rule};
}

}  // namespace tachograph::unwind
