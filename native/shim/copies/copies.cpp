#include "copies/copies.h"

#include "base/kernel.h"
#include "base/mixing.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "stacks/recorder.h"
#include "stacks/stack_capture.h"

namespace tachograph::copies {
namespace {

constexpr int64_t kFinestMean = 1024 * 1024;
constexpr int64_t kCoarsestMean = int64_t{1} << 36;
constexpr uint32_t kMostRows = 20;  // per second
constexpr uint32_t kFewRows = 5;
constexpr int64_t kAdaptNs = 1'000'000'000;

struct State {
    std::atomic<int64_t> mean{kFinestMean};
    std::atomic<uint32_t> rows{0};
    int64_t adapted_ns = 0;
};
constinit State g;

void write(heap::Counters* counters, int64_t size, const tg_walk& found, const void* caller) {
    const spool::Ticket ticket = spool::reserve(Kind::copy, sizeof(CopyRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<CopyRecord*>(ticket.record);
    record->time_ns = kernel::monotonic_ns();
    record->bytes = counters->copied - counters->copied_recorded;
    record->size = size;
    record->mean = counters->copy_mean;
    record->pc = reinterpret_cast<uint64_t>(caller);
    record->thread = counters->thread;
    record->stack = found.stack;
    record->stack_state = found.state;
    spool::commit(ticket);
    counters->copied_recorded = counters->copied;
}

}  // namespace

// Von Neumann's method (1951): exponential variates from comparisons of uniform ones alone.
uint64_t draw(uint64_t* random, int64_t mean) {
    for (double whole = 0;; whole += 1) {
        const double first = uniform(random);
        for (double last = first;;) {
            const double odd = uniform(random);
            if (last <= odd)
                return static_cast<uint64_t>((whole + first) * static_cast<double>(mean));
            last = uniform(random);
            if (odd <= last) break;
        }
    }
}

void begin(heap::Counters* counters) {
    counters->copy_mean = g.mean.load(std::memory_order_relaxed);
    counters->copy_budget = static_cast<int64_t>(draw(&counters->random, counters->copy_mean));
}

void count_slowly(heap::Counters* counters, size_t size, const void* caller) {
    heap::Local& local = heap::t_local;
    if (local.busy) return;
    local.busy = true;
    if (recording() && kernel::getpid() == spool::control()->pid &&
        !recorder().paused.load(std::memory_order_relaxed)) {
        tg_walk found = kNotWalked;
        witness::walk(&found);
        modules::saw(reinterpret_cast<uint64_t>(caller));
        write(counters, static_cast<int64_t>(size), found, caller);
        const uint32_t rows = g.rows.fetch_add(1, std::memory_order_relaxed);
        int64_t mean = g.mean.load(std::memory_order_relaxed);
        if (rows >= 8 * kMostRows && mean < kCoarsestMean &&
            g.mean.compare_exchange_strong(mean, 2 * mean))
            g.rows.store(0, std::memory_order_relaxed);
    }
    begin(counters);
    local.busy = false;
}

void finish(heap::Counters* counters) {
    if (!counters || counters->copied == counters->copied_recorded || !recording()) return;
    tg_walk unseen = kNotWalked;
    unseen.state = TG_STACK_UNSEEN;
    write(counters, 0, unseen, nullptr);
}

void pause(heap::Counters* counters, bool yes) {
    if (yes)
        finish(counters);
    else
        counters->copied_recorded = counters->copied;
}

void tick(int64_t now_ns) {
    if (now_ns - g.adapted_ns < kAdaptNs) return;
    g.adapted_ns = now_ns;
    const int64_t mean = g.mean.load(std::memory_order_relaxed);
    const uint32_t rows = g.rows.exchange(0, std::memory_order_relaxed);
    if (rows > kMostRows && mean < kCoarsestMean)
        g.mean.store(2 * mean, std::memory_order_relaxed);
    else if (rows < kFewRows && mean > kFinestMean)
        g.mean.store(mean / 2, std::memory_order_relaxed);
}

}  // namespace tachograph::copies
