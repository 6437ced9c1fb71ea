#include "memory/heap.h"

#include "arch/registers.h"
#include "base/kernel.h"
#include "memory/block_looks.h"
#include "memory/footprint.h"
#include "memory/import_tables.h"
#include "memory/mappings.h"
#include "memory/memory_parts.h"
#include "memory/reserves.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "stacks/native_path.h"
#include "stacks/recorder.h"
#include "stacks/recording_budget.h"
#include "stacks/sources.h"
#include "stacks/stack_capture.h"
#include "stacks/threads.h"
#include "tachograph/mixing.h"

namespace tachograph::heap {

__thread Local t_local __attribute__((tls_model("initial-exec")));
std::atomic<Mode> g_mode{Mode::undecided};
std::atomic<Passing> g_passing{Passing::no};
bool g_lent = false;
std::atomic<int64_t> g_mapped_chunks{0};
bool g_operator_new_unseen = false;

namespace {

constexpr int64_t kBudget = 64 * 1024;
constexpr int64_t kFinestMean = 512 * 1024;
constexpr int64_t kCoarsestMean = int64_t{1} << 34;
// Samples are walks, which take as long as the stack is deep (budget.h); rows are bytes on the disk
// (blocks.cpp). Per second.
constexpr uint32_t kMostSamples = 1200;
constexpr uint32_t kFewSamples = 300;
constexpr uint32_t kMostWalksOfMoved = 300;
// The clock takes a part of a short walk's time: it is asked for one walk in so many.
constexpr uint64_t kMeasured = 8;
// Large blocks have their row at once, unless there are many of them.
constexpr int64_t kCertain = 16;  // means: such blocks are all sampled
constexpr uint32_t kMostAtOnce = 10;
constexpr uint32_t kFewAtOnce = 3;
constexpr uint32_t kNearlyFull = 750;  // of 1000
constexpr int64_t kAdaptNs = 1'000'000'000;
constexpr const char* kSourceName = "memory";

struct State {
    std::atomic<int64_t> mean{kFinestMean};
    std::atomic<int64_t> at_once{kCertain * kFinestMean};
    // Since the last adaptation.
    std::atomic<uint32_t> samples{0};
    std::atomic<uint32_t> walks_of_moved{0};  // that were not drawn
    std::atomic<int64_t> spent_ns{0};
    std::atomic<int64_t> allowed_ns{0};  // 0: not told yet
    std::atomic<uint64_t> walks{0};
    std::atomic<int64_t> walked_ns{0};  // CPU time of all walks, as the measured ones tell
    budget::Share share;
    std::atomic<uint32_t> written_at_once{0};
    std::atomic<int64_t> outside_to_sample{kFinestMean};
    int64_t outside_rest = kFinestMean;
    std::atomic_flag outside_busy = ATOMIC_FLAG_INIT;
    uint64_t outside_random = 0;
    int64_t adapted_ns = 0;
    bool begun = false;       // there was a first row
    bool incomplete = false;  // the hooks were off at first
    bool needed = false;      // by the wrappers of the interpreter's allocators
    bool inherited = false;   // the first row of a forked child is due
    bool settled = false;     // what the memory consists of was read before the interpreter's end
};
constinit State g;

uint64_t seed(uint64_t salt) {
    uint64_t value = 0;
    constexpr int kNonBlocking = 1;
    if (kernel::call(SYS_getrandom, kernel::address(&value), sizeof value, kNonBlocking) ==
        sizeof value)
        return value;
    return static_cast<uint64_t>(kernel::monotonic_ns()) ^ salt << 32;
}

class Busy {
  public:
    Busy() : was_(t_local.busy) { t_local.busy = true; }
    ~Busy() { t_local.busy = was_; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    bool again() const { return was_; }

  private:
    bool was_;
    AtWork at_work_;
};

void coarsen(std::atomic<int64_t>& mean) {
    int64_t now = mean.load(std::memory_order_relaxed);
    if (now < kCoarsestMean) mean.compare_exchange_strong(now, 2 * now);
}

// Too much of either in less than a second: not waited for until the recorder's own thread looks.
bool too_many(std::atomic<uint32_t>& count, uint32_t most) {
    if (count.fetch_add(1, std::memory_order_relaxed) + 1 < 2 * most) return false;
    count.store(0, std::memory_order_relaxed);
    return true;
}

// All that a second may cost.
bool too_dear(int64_t ns) {
    const int64_t spent = g.spent_ns.fetch_add(ns, std::memory_order_relaxed) + ns;
    const int64_t allowed = g.allowed_ns.load(std::memory_order_relaxed);
    if (spent < (allowed > 0 ? allowed : budget::least_ns())) return false;
    g.spent_ns.store(0, std::memory_order_relaxed);
    return true;
}

// What the walk of a sample takes of its thread's CPU time: measured for one in kMeasured, which
// counts for all of them. Those are spread by the golden ratio, with which no loop keeps step.
class Walk {
  public:
    Walk() {
        const uint64_t number = g.walks.fetch_add(1, std::memory_order_relaxed);
        const bool measured = number * 0x9E3779B97F4A7C15ull < ~uint64_t{0} / kMeasured;
        began_ns_ = measured ? kernel::own_cpu_ns() : -1;
    }
    int64_t took_ns() const {
        if (began_ns_ < 0) return 0;
        const int64_t took = (kernel::own_cpu_ns() - began_ns_) * int64_t{kMeasured};
        g.walked_ns.fetch_add(took, std::memory_order_relaxed);
        __atomic_fetch_add(&spool::control()->handler_cpu_ns, took, __ATOMIC_RELAXED);
        return took;
    }

  private:
    int64_t began_ns_;
};

// A followed block of this size on that realloc makes larger or smaller is followed on, whatever
// the sampling says. If all that it is made of counts as new each time, some hundred megabytes that
// grow in small steps are hundreds of gigabytes: the sampling gets so coarse that the block as it
// is in the end would most likely be in no sample. Others are drawn as new blocks are. Either way
// what a block stands for is right on average, whether it was followed before or not.
constexpr int64_t kGoesOn = 2 * kFinestMean;
// So long a stack may be told again for the next form of the block, if Python is where it was.
constexpr int64_t kSameStackNs = 1'000'000'000;

struct Sampled {
    const void* block;
    size_t size;
    size_t requested;
    const void* caller;
    int64_t mean;
    uint32_t thread;
    bool drawn;
};

bool at_once(const Sampled& sampled) {
    const auto size = static_cast<int64_t>(sampled.size);
    if (!sampled.drawn || size < g.at_once.load(std::memory_order_relaxed) ||
        size < kCertain * sampled.mean)
        return false;
    if (too_many(g.written_at_once, kMostAtOnce)) coarsen(g.at_once);
    return true;
}

bool goes_on() { return t_local.moved != nullptr; }

void follow(const Sampled& sampled, blocks::Block* block) {
    block->time_ns = t_local.moved_ns != 0 ? t_local.moved_ns : kernel::monotonic_ns();
    block->size = static_cast<int64_t>(sampled.size);
    block->requested = static_cast<int64_t>(sampled.requested);
    block->mean = goes_on() ? kFinestMean : sampled.mean;
    block->at_once = at_once(sampled);
    if (goes_on()) {
        block->forms_slot = t_local.moved->forms_slot;
        block->forms_of = t_local.moved->forms_of;
    }
    blocks::follow(sampled.block, *block);
}

// Of a block that goes on and was not drawn: Python is where it was when the stack was walked, or
// there were too many walks.
bool has_same_stack(const Sampled& sampled, const tg_position& here) {
    const blocks::Block& was = *t_local.moved;
    if (sampled.drawn || was.thread != sampled.thread || was.domain != t_local.domain ||
        t_local.moved_ns - was.walked_ns > kSameStackNs)
        return false;
    if (was.frame && was.frame == here.frame && was.instruction == here.instruction) return true;
    return g.walks_of_moved.fetch_add(1, std::memory_order_relaxed) >= kMostWalksOfMoved;
}

void sample(const Sampled& sampled) {
    tg_position here{};
    const bool known =
        static_cast<int64_t>(sampled.size) >= kGoesOn && recorder().walker.position(&here) != 0;
    if (goes_on() && has_same_stack(sampled, here)) {
        blocks::Block same = *t_local.moved;
        return follow(sampled, &same);
    }
    const Walk walk;
    tg_walk found = kNotWalked;
    const uint64_t caller = stack_capture::outside_caller(sampled.caller);
    const native_path::Found native =
        native_path::walk_hook(caller, unwind::registers_here(), &found);
    blocks::Block block{};
    block.walked_ns = kernel::monotonic_ns();
    block.frame = known ? here.frame : nullptr;
    block.instruction = here.instruction;
    block.pc = caller;
    block.thread = sampled.thread;
    block.stack = found.stack;
    block.native_stack = native.stack;
    block.native_path = static_cast<uint8_t>(native.path);
    block.domain = t_local.domain;
    block.stack_state = found.state;
    block.span = found.span;
    if (block.pc != 0) modules::saw(block.pc);
    follow(sampled, &block);
    const bool dear = too_dear(walk.took_ns());
    if (!sampled.drawn) return;
    if (too_many(g.samples, kMostSamples) || dear) coarsen(g.mean);
    if (dear) coarsen(g.mean);  // at once to a quarter: each step on the way costs as much again
}

// Whether the thread looks for the end of a line that has touched reserved memory.
bool looks(const Counters* counters) {
    return reserves::any() && counters->visits > 0 && live() &&
           !recorder().paused.load(std::memory_order_relaxed);
}

void refill(Counters* counters) {
    int64_t more = counters->points.next < kBudget ? counters->points.next : kBudget;
    const bool visits = looks(counters);
    if (footprint::looking(counters) || (visits && counters->passes > 0)) more = 0;
    counters->python_floor = visits ? INT64_MAX : 0;
    counters->allocation_budget = counters->allocation_refill = more;
}

// The thread counts in slot `index`; `thread` is its id in the recording.
void attach(uint32_t index, uint32_t thread) {
    if (g_mode.load(std::memory_order_acquire) != Mode::on) return;
    Counters* counters = footprint::counters(index);
    if (counters->random == 0) counters->random = seed(index);
    counters->thread = thread;
    counters->forked_faults = 0;
    counters->mean = g.mean.load(std::memory_order_relaxed);
    counters->points = first_points(&counters->random, counters->mean);
    counters->free_budget = kBudget;
    refill(counters);
    t_local.counters = counters;
    t_local.generation = threads::generation();
}

// A thread whose beginning was not seen may have been found since.
bool adopt(Local* local) {
    const uint32_t calls = ++local->outside;
    if (local->ended || local->busy || (calls & (calls - 1)) != 0 || !live()) return false;
    const Busy busy;
    threads::Thread* thread = threads::own();
    if (!thread) thread = threads::find(kernel::gettid());
    if (!thread) return false;
    attach(threads::slot_of(thread), thread->id.load(std::memory_order_relaxed));
    return true;
}

// New threads of a forked child that is not recorded: one place for all would be fought for.
bool abandoned(Mode mode) { return mode == Mode::on && g.begun && !recording(); }

// False: another thread is at it.
bool sample_outside(const Sampled& sampled) {
    if (g.outside_busy.test_and_set(std::memory_order_acquire)) return false;
    if (g.outside_random == 0) g.outside_random = seed(1);
    const int64_t next = g.outside_to_sample.load(std::memory_order_relaxed);
    const bool drawn = next < 0;
    if (drawn) {
        Sampled one = sampled;
        one.mean = kFinestMean;
        sample(one);
        const Points points = points_after({next, g.outside_rest}, &g.outside_random, kFinestMean);
        g.outside_rest = points.rest;
        g.outside_to_sample.store(points.next);
    }
    g.outside_busy.clear(std::memory_order_release);
    return drawn;
}

// In signal handlers as well. The wrappers of the interpreter's allocators pass as the hooks do.
void stop() {
    g_mode.store(Mode::off, std::memory_order_release);
    g_passing.store(g_lent ? Passing::no : Passing::all, std::memory_order_relaxed);
}

void turn_off(bool releases_as_well) {
    stop();
    if (!passing()) return;
    import_tables::pass_hooks(releases_as_well);
    if (!releases_as_well) g_passing.store(Passing::but_releases, std::memory_order_relaxed);
}

void turn_on() {
    import_tables::meet_hooks();
    g_passing.store(Passing::no, std::memory_order_relaxed);
    g_mode.store(Mode::on, std::memory_order_release);
}

// The counters are of an earlier recording of this process; who has the slot now is not asked.
bool are_stale(Local* local) {
    if (__builtin_expect(local->generation == threads::generation(), 1)) return false;
    local->counters = nullptr;
    local->outside = 0;
    return true;
}

// A block stays the sample that it was: only what came to it is counted.
void count_grown(Counters* counters, int64_t bytes) {
    add(&counters->flows[t_local.domain].allocated, bytes);
    counters->free_budget -= bytes;  // the other budget draws samples
    if (counters->free_budget < 0) gave_slowly(counters);
}

}  // namespace

void took_slowly(Counters* counters, const void* block, size_t size, size_t requested,
                 const void* caller) {
    if (are_stale(&t_local)) return;
    const int64_t consumed = counters->allocation_refill - counters->allocation_budget;
    counters->points.next -= consumed;
    const bool due = footprint::publish(counters, false);
    const bool drawn = counters->points.next < 0;
    // Nearly always: what follows asks for the process, and stores where other threads store.
    const bool moves = goes_on() && static_cast<int64_t>(size) >= kGoesOn;
    if (!drawn && !moves && !due && !footprint::looking(counters) && !reserves::any())
        return refill(counters);
    const Busy busy;
    if (!busy.again() && live() && !recorder().paused.load(std::memory_order_relaxed)) {
        if (footprint::looking(counters)) footprint::look(counters);
        if (drawn || moves)
            sample({block, size, requested, caller, counters->mean, counters->thread, drawn});
        if (due) footprint::cross(counters, caller);
        if (reserves::any()) reserves::visit(counters, caller);
    }
    if (drawn) {
        counters->mean = g.mean.load(std::memory_order_relaxed);
        counters->points = points_after(counters->points, &counters->random, counters->mean);
    }
    refill(counters);
}

void gave_slowly(Counters* counters) {
    if (are_stale(&t_local)) return;
    const bool visits = looks(counters);
    counters->free_budget = visits && counters->passes > 0 ? 0 : kBudget;
    const bool due = footprint::publish(counters, false);
    if (!due && !visits) return;
    const Busy busy;
    if (busy.again() || !live() || recorder().paused.load(std::memory_order_relaxed)) return;
    if (due) footprint::cross(counters, __builtin_return_address(0));
    if (visits) reserves::visit(counters, __builtin_return_address(0));
}

void moved_followed(Local& local, uint32_t followed, const void* from, size_t old,
                    const void* block, size_t size, size_t requested, const void* caller) {
    if (block == from && size >= old && local.counters &&
        blocks::grew_little(followed, size, requested)) {
        blocks::restore(followed, block);
        return count_grown(local.counters, static_cast<int64_t>(size - old));
    }
    blocks::Block was{};
    blocks::Block* on = static_cast<int64_t>(size) >= kGoesOn ? &was : nullptr;
    local.moved_ns = blocks::settle(followed, on);
    local.moved = on;
    count_moved(local, old, block, size, requested, caller);
    local.moved = nullptr;
    local.moved_ns = 0;
}

void took_outside(const void* block, size_t size, size_t requested, const void* caller) {
    const Mode mode = g_mode.load(std::memory_order_acquire);
    if (mode == Mode::off || abandoned(mode)) return;
    Local& local = t_local;
    if (mode == Mode::on && adopt(&local)) return took(local, block, size, requested, caller);
    footprint::count_outside(local.domain, static_cast<int64_t>(size), 0);
    if (mode != Mode::on) return;
    const auto bytes = static_cast<int64_t>(size);
    const bool drawn = g.outside_to_sample.fetch_sub(bytes, std::memory_order_relaxed) < bytes;
    if (!drawn && !goes_on()) return;
    const Busy busy;
    if (busy.again() || !live() || recorder().paused.load(std::memory_order_relaxed)) return;
    const bool done = drawn && sample_outside({block, size, requested, caller, 0, kNone, true});
    if (!done && goes_on()) sample({block, size, requested, caller, kFinestMean, kNone, false});
}

void gave_outside(size_t size) {
    const Mode mode = g_mode.load(std::memory_order_acquire);
    if (mode == Mode::off || abandoned(mode)) return;
    Local& local = t_local;
    if (mode == Mode::on && adopt(&local)) return gave(local, size);
    footprint::count_outside(local.domain, 0, static_cast<int64_t>(size));
}

void expect_nothing() {
    if (g.needed || g.begun) return;
    g.incomplete = true;
    turn_off(true);
}

void keep_counting() { g.needed = true; }

void end_counting() {
    g.needed = false;
    stop();
}

void begin_anew() {
    g.mean.store(kFinestMean);
    g.at_once.store(kCertain * kFinestMean);
    g.samples.store(0);
    g.walks_of_moved.store(0);
    g.written_at_once.store(0);
    g.outside_to_sample.store(kFinestMean);
    g.outside_rest = kFinestMean;
    g.outside_busy.clear();
    g.outside_random = 0;
    g.adapted_ns = 0;
    g.begun = g.inherited = false;
    g.incomplete = true;
    blocks::forget_all();
    mappings::forget();
    reserves::forget();
    block_looks::after_fork_in_child();
    footprint::forget();
}

bool complete() { return !g.incomplete; }

void begin(int64_t small, bool known) {
    g.begun = true;
    if (t_local.counters) footprint::publish(t_local.counters, true);
    reserves::settle(false);
    footprint::begin(small, known);
}

namespace {

bool on() { return g_mode.load(std::memory_order_acquire) == Mode::on; }

int64_t mapped_chunks() { return g_mapped_chunks.load(std::memory_order_relaxed); }

bool prepare(const tg_options& options) {
    const bool ready = options.memory != 0 &&
                       footprint::open(static_cast<int64_t>(options.memory_threshold)) &&
                       blocks::open();
    // What is watched is to be known when it is given back.
    ready ? turn_on() : turn_off(options.redundancy == 0);
    return ready || options.memory == 0;
}

int start() {
    reserves::begin(kernel::monotonic_ns());
    block_looks::begin(kernel::monotonic_ns());
    memory_parts::begin(kernel::monotonic_ns());
    g.settled = false;
    if (on() && g.inherited) footprint::begin_again();
    g.inherited = false;
    if (on() && g_operator_new_unseen) spool::count(Loss::operator_new_unseen);
    return 0;
}

void detach() {
    Local& local = t_local;
    local.ended = true;
    if (!local.counters) return;
    footprint::publish(local.counters, true);
    local.counters = nullptr;
}

void inherit() {
    if (g_mode.load(std::memory_order_acquire) != Mode::on) return;
    g.inherited = true;
    g.settled = false;
    t_local.counters = nullptr;
    g.mean.store(kFinestMean);
    g.at_once.store(kCertain * kFinestMean);
    g.samples.store(0);
    g.walks_of_moved.store(0);
    g.spent_ns.store(0);
    g.allowed_ns.store(0);
    g.walked_ns.store(0);
    g.share = {};
    g.written_at_once.store(0);
    g.outside_busy.clear();
    g.outside_random = 0;
    g.adapted_ns = 0;
    blocks::forget_all();
    footprint::inherit();
}

bool tick(int64_t now_ns) {
    if (g_mode.load(std::memory_order_acquire) != Mode::on) return true;
    reserves::tick(now_ns);
    if (memory_parts::tick(now_ns, mapped_chunks())) {
        footprint::mark();  // what is held, beside what is in memory
    } else if (footprint::tick_due(now_ns)) {
        block_looks::look(false);  // beside each resident set: what of the blocks it is made of
        footprint::tick();
    } else if (block_looks::look_if_owed()) {
        footprint::mark();  // what was found is of this resident set
    }
    if (now_ns - g.adapted_ns < kAdaptNs) return true;
    g.adapted_ns = now_ns;
    blocks::write(now_ns, blocks::Rows::old);
    const int64_t mean = g.mean.load(std::memory_order_relaxed);
    const uint32_t samples = g.samples.exchange(0, std::memory_order_relaxed);
    g.walks_of_moved.store(0, std::memory_order_relaxed);
    const int64_t spent = g.spent_ns.exchange(0, std::memory_order_relaxed);
    const int64_t allowed = g.share.left_ns(kSourceName);
    g.allowed_ns.store(allowed, std::memory_order_relaxed);
    const bool full = blocks::filling() > kNearlyFull;
    if (samples > kMostSamples || spent > allowed || full)
        coarsen(g.mean);
    else if (samples < kFewSamples && spent < allowed / 4 && mean > kFinestMean)
        g.mean.store(mean / 2, std::memory_order_relaxed);

    const int64_t least = g.at_once.load(std::memory_order_relaxed);
    const uint32_t large = g.written_at_once.exchange(0, std::memory_order_relaxed);
    if (large > kMostAtOnce && least < kCertain * kCoarsestMean)
        g.at_once.store(2 * least, std::memory_order_relaxed);
    else if (large < kFewAtOnce && least > kCertain * kFinestMean)
        g.at_once.store(least / 2, std::memory_order_relaxed);
    return true;
}

// What is still there at a flush has outlived the program's own part: whether it dies young from
// then on is the interpreter's doing.
void flush(bool exiting) {
    if (!on()) return;
    reserves::settle(true);
    blocks::write(kernel::monotonic_ns(), blocks::Rows::last);
    block_looks::look(true);
    g.settled = memory_parts::settle(mapped_chunks(), exiting);
    footprint::mark();
}

constexpr Source kSource{
    .name = kSourceName,
    .prepare = prepare,
    .start = start,
    .pause =
        [](bool) {
            if (!on()) return;
            reserves::settle(false);
            footprint::mark();  // a row between what is recorded and what is not
        },
    .sampled =
        [](const Sample& sample) {
            if (!on()) return;
            memory_parts::sampled(sample.found, sample.time_ns);
            if (reserves::any()) reserves::sampled(sample.found, arch::pc_of(*sample.context));
        },
    .tick = tick,
    .keep = reserves::keep_stacks,
    .window_ends =
        [] {
            if (!on()) return;
            // A window takes late rows for a second only; a block may wait for its row for two.
            blocks::write(kernel::monotonic_ns(), blocks::Rows::window);
            footprint::mark();
        },
    .flush = flush,
    .finish =
        [] {
            if (!on()) return;
            reserves::settle(false);
            blocks::write(kernel::monotonic_ns(), blocks::Rows::end);
            block_looks::look(true);
            if (!g.settled) memory_parts::settle(mapped_chunks(), false);
            footprint::finish();
        },
    .stop = stop,
    .cost = [] { return g.walked_ns.load(std::memory_order_relaxed); },
    .enter = [](threads::Thread* own,
                bool) { attach(threads::slot_of(own), own->id.load(std::memory_order_relaxed)); },
    .leave = [](threads::Thread*) { detach(); },
    .before_fork = mappings::before_fork,
    .after_fork =
        [](bool in_child) {
            mappings::after_fork(in_child);
            if (!in_child) return;
            reserves::after_fork_in_child();
            block_looks::after_fork_in_child();
            memory_parts::after_fork_in_child();
        },
    .forget = inherit,
};
TG_REGISTER_SOURCE(kSource);

}  // namespace
}  // namespace tachograph::heap
