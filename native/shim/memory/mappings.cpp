#include "memory/mappings.h"

#include "base/bounded_lock.h"
#include "base/kernel.h"
#include "memory/blocks.h"
#include "memory/range_table.h"
#include "memory/releases.h"
#include "spool/layout.h"
#include "spool/spool.h"

#include <atomic>

namespace tachograph::mappings {
namespace {

constexpr size_t kMost = 16 * 1024;
// The holder may have lost its processor, on a busy machine for some turns of others.
constexpr int64_t kPatienceNs = 200'000'000;
constexpr int64_t kForkPatienceNs = 1'000'000'000;
constexpr int kTriesOfStuck = 1000;

struct Range {
    uintptr_t begin;
    uintptr_t end;
    bool whole;  // begins where it was mapped
};

struct State {
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    std::atomic<int> forks{0};       // that want it or have it: they go first, and take their time
    std::atomic<bool> stuck{false};  // was waited for in vain, and not had since
    RangeTable<Range, kMost> ranges;
};
constinit State g;

__thread bool t_forking __attribute__((tls_model("initial-exec"))) = false;
__thread bool t_holds __attribute__((tls_model("initial-exec"))) = false;

// Not waited for without end: in a process that was made past our hooks it may never be given back.
bool acquire_table(bool to_fork) {
    const int64_t begin = kernel::monotonic_ns();
    const auto goes_on = [&](int tries) {
        if (g.stuck.load(std::memory_order_relaxed)) return tries < kTriesOfStuck;
        const bool forks = g.forks.load(std::memory_order_relaxed) > 0;
        return kernel::monotonic_ns() - begin < (forks ? kForkPatienceNs : kPatienceNs);
    };
    // A thread that takes it again and again on another processor leaves no gap for a fork.
    for (int tries = 1; !to_fork && g.forks.load(std::memory_order_relaxed) > 0; ++tries) {
        if (!goes_on(tries)) break;
        kernel::call(SYS_sched_yield);
    }
    const bool held = acquire(g.busy, goes_on);
    g.stuck.store(!held, std::memory_order_relaxed);
    return held;
}

class Hold {
  public:
    Hold() {
        if (t_forking) return;
        // A signal handler may have interrupted the holder on this very thread.
        if (!t_holds) {
            t_holds = true;
            held_ = acquire_table(false);
            t_holds = held_;
        }
        if (!held_) spool::count(Loss::mappings_untracked);
    }
    ~Hold() {
        if (!held_) return;
        release(g.busy);
        t_holds = false;
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    explicit operator bool() const { return held_ || t_forking; }

  private:
    bool held_ = false;
};

void end_following(const Range& range) {
    const auto* block = reinterpret_cast<const void*>(range.begin);
    if (range.whole && blocks::maybe_followed(block)) blocks::died(block);
}

// Cuts [begin, end) out of the table; how many bytes of it were there.
size_t cut(uintptr_t begin, uintptr_t end) {
    size_t gone = 0;
    size_t at = g.ranges.first_behind(begin);
    while (at < g.ranges.count() && g.ranges[at].begin < end) {
        Range& range = g.ranges[at];
        const uintptr_t from = range.begin > begin ? range.begin : begin;
        const uintptr_t to = range.end < end ? range.end : end;
        gone += to - from;
        const Range rest{to, range.end, false};
        if (from == range.begin) {
            end_following(range);
            if (rest.begin < rest.end) {
                range = rest;
                ++at;
            } else {
                g.ranges.erase(at);
            }
            continue;
        }
        range.end = from;
        ++at;
        if (rest.begin < rest.end && !g.ranges.insert(at, rest)) gone += rest.end - rest.begin;
    }
    return gone;
}

}  // namespace

void forget() {
    const Hold hold;
    while (hold && g.ranges.is_open() && g.ranges.count() > 0) g.ranges.erase(g.ranges.count() - 1);
}

void before_fork() {
    g.forks.fetch_add(1);
    t_forking = !t_holds && acquire_table(true);
    if (t_forking) return;
    g.forks.fetch_sub(1);
    spool::count(Loss::mappings_untracked);
}

void after_fork(bool in_child) {
    // The thread that has it in the parent is not there in the child.
    if (in_child) {
        g.forks.store(0);
        g.stuck.store(false);
    } else if (t_forking) {
        g.forks.fetch_sub(1);
    }
    if (t_forking || in_child) g.busy.clear(std::memory_order_release);
    t_forking = false;
}

Change add(uintptr_t address, size_t size) {
    const Hold hold;
    Change change;
    if (!hold || !g.ranges.open()) return change;
    change.unmapped = cut(address, address + size);
    if (g.ranges.insert(g.ranges.first_behind(address), {address, address + size, true}))
        change.mapped = size;
    return change;
}

Change remove(uintptr_t address, size_t size) {
    releases::tell(reinterpret_cast<const void*>(address), size);
    const Hold hold;
    Change change;
    if (hold && g.ranges.is_open()) change.unmapped = cut(address, address + size);
    return change;
}

bool holds(uintptr_t address, size_t size) {
    const Hold hold;
    if (!hold || !g.ranges.is_open()) return false;
    const size_t at = g.ranges.first_behind(address);
    return at < g.ranges.count() && g.ranges[at].begin <= address &&
           address + size <= g.ranges[at].end;
}

size_t disown(size_t size, bool (*are)(uintptr_t address, void* context), void* context) {
    const Hold hold;
    if (!hold || !g.ranges.is_open()) return 0;
    size_t bytes = 0;
    for (size_t at = g.ranges.count(); at-- > 0;) {
        const Range& range = g.ranges[at];
        if (range.end - range.begin != size || !range.whole || !are(range.begin, context)) continue;
        bytes += size;
        g.ranges.erase(at);
    }
    return bytes;
}

}  // namespace tachograph::mappings
