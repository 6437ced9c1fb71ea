#include "copies/copies.h"

#include "base/kernel.h"
#include "memory/footprint.h"
#include "memory/thinning.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "stacks/native_path.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/threads.h"

#include <atomic>

namespace tachograph::copies {
namespace {

constexpr int64_t kFinestMean = 512 * 1024;
constexpr int64_t kCoarsestMean = int64_t{1} << 36;
constexpr uint32_t kMostRows = 50;  // per second
constexpr uint32_t kFewRows = 12;
constexpr int64_t kAdaptNs = 1'000'000'000;
constexpr double kLog2 = 0.693147180559945309;
constexpr double kNever = 1e-12;  // a chance that is none

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
    record->mean_bytes = mean_of_independent(size, counters->copy_mean);
    record->pc = reinterpret_cast<uint64_t>(caller);
    record->thread = counters->thread;
    record->stack = found.stack;
    record->stack_state = found.state;
    record->span = found.span;
    record->native_stack = native.stack;
    record->native_path = static_cast<uint8_t>(native.path);
    spool::commit(ticket);
    counters->copied_recorded = counters->copied;
}

// Draws where the stream of the thread's copies holds its next point: behind a copy that held one,
// whose budget is negative, or, where none was drawn yet, anywhere.
void draw(heap::Counters* counters) {
    const bool first = counters->copy_mean == 0;
    counters->copy_mean = g.mean.load(std::memory_order_relaxed);
    const Points points = first ? first_points(&counters->random, counters->copy_mean)
                                : points_after({counters->copy_budget, counters->copy_rest},
                                               &counters->random, counters->copy_mean);
    counters->copy_budget = points.next;
    counters->copy_rest = points.rest;
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
    .flush = [](bool) { finish_all(); },
    .finish = finish_all,
    .leave =
        [](threads::Thread* own) {
            if (g.wanted) finish(footprint::counters(threads::slot_of(own)));
        },
};
TG_REGISTER_SOURCE(kSource);

}  // namespace

int64_t mean_of_independent(int64_t size, int64_t mean) {
    const auto bytes = static_cast<double>(size);
    double not_held = 1 - bytes / thinning::stands_for(bytes, static_cast<double>(mean));
    if (size <= 0 || not_held <= kNever) return 1;
    // bytes / -log(not_held): from libm it would be another library in the program. What is left
    // of the argument is between 1/2 and 1, where the series of atanh gains a digit with each term.
    double minus_log = 0;
    for (; not_held < 0.5; not_held *= 2) minus_log += kLog2;
    const double z = (1 - not_held) / (1 + not_held);
    double power = z;
    for (int odd = 1; odd < 31; odd += 2, power *= z * z) minus_log += 2 * power / odd;
    const double same = bytes / minus_log;
    return same > 1 ? static_cast<int64_t>(same + 0.5) : 1;
}

void count_slowly(heap::Counters* counters, size_t size, const void* caller) {
    heap::Local& local = heap::t_local;
    if (local.busy) return;
    local.busy = true;
    const AtWork at_work;
    if (counters->copy_mean == 0) {  // the thread's first copy
        draw(counters);
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
    draw(counters);
    local.busy = false;
}

}  // namespace tachograph::copies
