#include "copies/copies.h"

#include "base/kernel.h"
#include "base/mixing.h"
#include "memory/footprint.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "stacks/native_path.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/threads.h"

#include <atomic>

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
    bool wanted = false;
};
constinit State g;

void write(heap::Counters* counters, int64_t size, const tg_walk& found,
           const native_path::Found& native, const void* caller) {
    const spool::Ticket ticket = spool::reserve(Kind::copy, sizeof(CopyRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<CopyRecord*>(ticket.record);
    record->time_ns = kernel::monotonic_ns();
    record->bytes = counters->copied - counters->copied_recorded;
    record->size_bytes = size;
    record->mean_bytes = counters->copy_mean;
    record->pc = reinterpret_cast<uint64_t>(caller);
    record->thread = counters->thread;
    record->stack = found.stack;
    record->stack_state = found.state;
    record->native_stack = native.stack;
    record->native_path = static_cast<uint8_t>(native.path);
    spool::commit(ticket);
    counters->copied_recorded = counters->copied;
}

// Draws the bytes until the thread's next row.
void begin(heap::Counters* counters) {
    counters->copy_mean = g.mean.load(std::memory_order_relaxed);
    counters->copy_budget = static_cast<int64_t>(draw(&counters->random, counters->copy_mean));
}

// What no row has told yet.
void finish(heap::Counters* counters) {
    if (counters->copied == counters->copied_recorded || !recording()) return;
    tg_walk unseen = kNotWalked;
    unseen.state = TG_STACK_UNSEEN;
    write(counters, 0, unseen, {}, nullptr);
}

void finish_all() {
    if (!g.wanted) return;
    for (uint32_t slot = 0; slot < threads::high_water(); ++slot) finish(footprint::counters(slot));
}

// Before a pause what is not told yet is told; after it, what was copied meanwhile is forgotten.
void pause(bool yes) {
    if (yes) return finish_all();
    for (uint32_t slot = 0; g.wanted && slot < threads::high_water(); ++slot) {
        heap::Counters* counters = footprint::counters(slot);
        counters->copied_recorded = counters->copied;
    }
}

// Keeps the number of rows bounded.
bool tick(int64_t now_ns) {
    if (!g.wanted || now_ns - g.adapted_ns < kAdaptNs) return true;
    g.adapted_ns = now_ns;
    const int64_t mean = g.mean.load(std::memory_order_relaxed);
    const uint32_t rows = g.rows.exchange(0, std::memory_order_relaxed);
    if (rows > kMostRows && mean < kCoarsestMean)
        g.mean.store(2 * mean, std::memory_order_relaxed);
    else if (rows < kFewRows && mean > kFinestMean)
        g.mean.store(mean / 2, std::memory_order_relaxed);
    return true;
}

constexpr Source kSource{
    .name = "copies",
    .prepare =
        [](const tg_options& options) {
            g.wanted = options.memory != 0;
            return true;
        },
    .pause = pause,
    .tick = tick,
    .flush = finish_all,
    .finish = finish_all,
    .leave =
        [](threads::Thread* own) {
            if (g.wanted) finish(footprint::counters(threads::slot_of(own)));
        },
};
TG_REGISTER_SOURCE(kSource);

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

void count_slowly(heap::Counters* counters, size_t size, const void* caller) {
    heap::Local& local = heap::t_local;
    if (local.busy) return;
    local.busy = true;
    const AtWork at_work;
    if (counters->copy_mean == 0) {  // the thread's first copy
        begin(counters);
        counters->copy_budget -= static_cast<int64_t>(size);
        if (counters->copy_budget >= 0) {
            local.busy = false;
            return;
        }
    }
    if (recording() && kernel::getpid() == spool::control()->pid &&
        !recorder().paused.load(std::memory_order_relaxed)) {
        tg_walk found = kNotWalked;
        const auto address = reinterpret_cast<uint64_t>(caller);
        const native_path::Found native =
            native_path::walk_hook(address, unwind::registers_here(), &found);
        modules::saw(address);
        write(counters, static_cast<int64_t>(size), found, native, caller);
        const uint32_t rows = g.rows.fetch_add(1, std::memory_order_relaxed);
        int64_t mean = g.mean.load(std::memory_order_relaxed);
        if (rows >= 8 * kMostRows && mean < kCoarsestMean &&
            g.mean.compare_exchange_strong(mean, 2 * mean))
            g.rows.store(0, std::memory_order_relaxed);
    }
    begin(counters);
    local.busy = false;
}

}  // namespace tachograph::copies
