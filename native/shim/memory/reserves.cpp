#include "memory/reserves.h"

#include "base/kernel.h"
#include "memory/footprint.h"
#include "memory/page_looks.h"
#include "memory/resident_pages.h"
#include "spool/spool.h"
#include "stacks/recorder.h"
#include "stacks/stack_capture.h"
#include "stacks/threads.h"

#include <sys/resource.h>
#include <cstdint>

namespace tachograph::reserves {

std::atomic<bool> g_any{false};

namespace {

using page_looks::Charge;
using page_looks::Found;
using page_looks::Hold;
using page_looks::Look;
using page_looks::Range;
using page_looks::Seeks;
namespace ranges = page_looks::ranges;

constexpr int kTries = 10'000;
constexpr int kVisitTries = 200;
constexpr int kSampleTries = 20;
// A thread that has grown looks again at its next allocations: where the line ends that grew.
constexpr uint32_t kVisits = 64;
// Native code may call malloc all the time: so often it asks whether the line goes on.
constexpr uint32_t kPasses = 256;
// The first of them look at all, as the line may end at any.
constexpr uint32_t kWholeVisits = 8;
constexpr uint32_t kFewThreads = 256;
constexpr size_t kNoticeable = 64;                  // pages
constexpr uintptr_t kOwnSpan = uintptr_t{4} << 30;  // looked at as a whole by a program's thread
constexpr int64_t kSweepNs = 50'000'000;
constexpr int64_t kSweepCost = 20;               // at most one in so many parts of the time
constexpr int64_t kLongestSweepNs = 10'000'000;  // what is left is looked at by the next one
constexpr int64_t kLongestLookNs = 5'000'000;    // by a program's thread
constexpr int64_t kOwnCost = 100;
constexpr int64_t kEndCost = 10;
constexpr int64_t kPatienceNs = 200'000'000;
constexpr int64_t kEndOfPatienceNs = 1'000'000'000;

struct State {
    std::atomic<uint32_t> latest{kNone};  // slot of the thread that ran Python last
    std::atomic<int64_t> nudged_at{0};    // page faults when it was last told to look
    std::atomic<uint64_t> claimed{0};     // pages that threads have found that run Python
    std::atomic<int64_t> own_sweep_ns{0};
    std::atomic<int64_t> own_sweep_took_ns{0};
    std::atomic<int64_t> own_rest_until_ns{0};  // after a look that was late
    TimeShare settling;
    // The recorder's own thread's.
    int64_t swept_ns = 0;
    int64_t sweep_took_ns = 0;
    int64_t swept_resident = 0;
    int64_t pending_ns = 0;  // since when there is growth that is charged to no thread
    uint64_t pending = 0;    // pages of it then
    uint64_t claimed_before = 0;
    page_looks::Progress progress;  // of a sweep that takes several ticks
    size_t left = 0;                // pages that it has found and charged to no thread
    void* walk_hint = nullptr;
    pid_t walk_hint_tid = 0;
};
constinit State g;

// Of all threads: those that the library starts touch what Python asked for. The kernel adds them
// up one by one, which is too much for thousands.
int64_t page_faults() {
    rusage usage{};
    const int of = threads::high_water() <= kFewThreads ? RUSAGE_SELF : RUSAGE_THREAD;
    if (kernel::call(SYS_getrusage, of, kernel::address(&usage)) != 0) return 0;
    return usage.ru_minflt;
}

uint32_t index_of(const heap::Counters* counters) {
    return static_cast<uint32_t>(counters - footprint::counters(0));
}

// The thread has visits again. Of another thread only if it has run Python last.
void watch(heap::Counters* counters) {
    __atomic_store_n(&counters->visits, kVisits, __ATOMIC_RELAXED);
    __atomic_store_n(&counters->passes, kPasses, __ATOMIC_RELAXED);
}

// Where a line may end that grew all is looked at; else what lies where nothing grew lately is
// looked at now and then. Not if it costs more than a part of the time: of this thread's, as others
// may run meanwhile.
Found look_as(Charge& charge, heap::Counters* counters, bool ends, int tries) {
    const Look look{&charge, true, Seeks::growth, tries, TimeLimit(kLongestLookNs)};
    if (kernel::monotonic_ns() < g.own_rest_until_ns.load(std::memory_order_relaxed)) return {};
    Found found = page_looks::active(look);
    const int64_t now = kernel::monotonic_ns();
    const int64_t rest = now - g.own_sweep_ns.load(std::memory_order_relaxed);
    const int64_t cost = g.own_sweep_took_ns.load(std::memory_order_relaxed);
    if (found.whole && page_looks::span() <= kOwnSpan &&
        rest > (ends ? kEndCost : kOwnCost) * cost) {
        const int64_t began = kernel::clock_ns(CLOCK_THREAD_CPUTIME_ID);
        const Found all = page_looks::all(look);
        found.came += all.came;
        found.whole = all.whole;
        g.own_sweep_took_ns.store(kernel::clock_ns(CLOCK_THREAD_CPUTIME_ID) - began,
                                  std::memory_order_relaxed);
        g.own_sweep_ns.store(kernel::monotonic_ns(), std::memory_order_relaxed);
    }
    g.claimed.fetch_add(found.came, std::memory_order_relaxed);
    if (found.late) {
        // Of shared mappings the kernel tells slowly. What is left is for the recorder's own
        // thread.
        g.own_rest_until_ns.store(kernel::monotonic_ns() + kSweepCost * kLongestLookNs,
                                  std::memory_order_relaxed);
        found.whole = true;
        return found;
    }
    if (found.came >= kNoticeable) watch(counters);
    return found;
}

// The thread's next allocation and its next release go the slow way. As both sides of the budget
// are moved, what was consumed stays what it is.
void hurry(heap::Counters* counters) {
    const int64_t left = __atomic_load_n(&counters->allocation_budget, __ATOMIC_RELAXED);
    if (left > 0) {
        heap::add(&counters->allocation_refill, -left);
        heap::add(&counters->allocation_budget, -left);
    }
    __atomic_store_n(&counters->free_budget, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&counters->python_floor, INT64_MAX, __ATOMIC_RELAXED);
}

// The thread that ran Python last looks at what came: probably it waits for those that touch it.
void hurry_latest() {
    const uint32_t latest = g.latest.load(std::memory_order_relaxed);
    if (latest == kNone) return;
    heap::Counters* counters = footprint::counters(latest);
    __atomic_store_n(&counters->faults, -1, __ATOMIC_RELAXED);
    watch(counters);
    hurry(counters);
}

// Where the thread that ran Python last stands, if it stands; it does as long as `seen` holds.
bool charge_latest(Charge* charge, kernel::ThreadCpu* seen) {
    const uint32_t index = g.latest.load(std::memory_order_relaxed);
    if (index == kNone) return false;
    const threads::Thread* thread = threads::at(index);
    const pid_t tid = thread->tid.load(std::memory_order_acquire);
    if (tid <= 0) return false;
    if (tid != g.walk_hint_tid) g.walk_hint = nullptr;
    g.walk_hint_tid = tid;
    *seen = kernel::read_cpu(tid);
    tg_walk found = kNotWalked;
    recorder().walker.walk_other(tid, &g.walk_hint, kernel::has_not_run, seen, &found);
    if (!kernel::has_not_run(seen) || found.stack == kNone) return false;
    charge->way = Charge::Way::given;
    charge->ready = true;
    charge->page.thread = thread->id.load(std::memory_order_relaxed);
    charge->page.stack = found.stack;
    charge->page.stack_state = found.state;
    return true;
}

bool has_not_run(void* seen) { return kernel::has_not_run(seen) != 0; }

// Whether the calling thread may be charged: it runs Python, and is in none of our functions.
bool may_charge(Page* page) {
    const heap::Counters* counters = heap::t_local.counters;
    tg_position here{};
    if (!counters || heap::t_local.busy || !live() ||
        recorder().paused.load(std::memory_order_relaxed) || !recorder().walker.position(&here))
        return false;
    page->thread = counters->thread;
    return true;
}

}  // namespace

// ------------------------------------------------------------------ what the program does

void add(uintptr_t begin, uintptr_t end, const Owner& owner) {
    const Hold hold(kTries);
    if (!hold) return spool::count(Loss::mappings_untracked);
    if (page_looks::add({begin, end, owner})) g_any.store(true, std::memory_order_relaxed);
}

void remove(uintptr_t begin, uintptr_t end) {
    if (!any()) return;
    give_back(begin, end);
    const Hold hold(kTries);
    if (!hold) return spool::count(Loss::mappings_untracked);
    page_looks::cut(begin, end);
    if (ranges::count() == 0) g_any.store(false, std::memory_order_relaxed);
}

Owner caller_of(const void* caller) {
    Owner owner;
    if (!may_charge(&owner.page)) return reserved_by(caller);
    tg_walk found = kNotWalked;
    stack_capture::walk(&found);
    owner.known = found.stack != kNone;
    owner.page.stack = found.stack;
    owner.page.stack_state = found.state;
    owner.page.pc = stack_capture::outside_caller(caller);
    return owner;
}

Owner reserved_by(const void* caller) {
    Owner owner;
    owner.page.pc = stack_capture::outside_caller(caller);
    return owner;
}

bool holds(uintptr_t begin, uintptr_t end, Owner* owner) {
    if (!any()) return false;
    const Hold hold(kTries);
    if (!hold) return false;
    const Range* range = ranges::holding(begin, end);
    if (range) *owner = range->owner;
    return range != nullptr;
}

void look_at(uintptr_t begin, uintptr_t end) {
    if (!any() || !recording()) return;
    Charge charge;
    if (may_charge(&charge.page)) {
        charge.way = Charge::Way::own;
    } else {
        const Hold hold(kTries);
        Range part;
        if (!hold || !ranges::part_from(begin, &part) || !part.owner.known) return;
    }
    const TimeLimit limit(kLongestLookNs);
    const Found found =
        page_looks::growth(begin, end, {&charge, true, Seeks::growth, kTries, limit});
    if (found.late) spool::count(Loss::page_scans_cut);
}

void give_back(uintptr_t begin, uintptr_t end) {
    look_at(begin, end);  // what was touched and given back between two looks counts as well
    if (!any()) return;
    const Hold hold(kTries);
    if (!hold) return;  // the next look will find that they are gone
    page_looks::forget(begin, end);
}

bool keep_stacks() {
    if (!any()) return true;
    const Hold hold(kTries);
    if (!hold) return false;
    uint32_t latest = kNone;
    for (size_t at = 0; at < ranges::count(); ++at) {
        const Owner& owner = ranges::at(at).owner;
        if (!owner.known || owner.page.stack == kNone || owner.page.stack == latest) continue;
        latest = owner.page.stack;
        const spool::Ticket ticket = spool::reserve(Kind::kept, sizeof(KeptRecord));
        if (!ticket.record) return false;
        reinterpret_cast<KeptRecord*>(ticket.record)->stack = latest;
        spool::commit(ticket);
    }
    return true;
}

// ------------------------------------------------------------------ looks

void visit(heap::Counters* counters, const void* caller) {
    heap::Local& local = heap::t_local;
    const bool python = local.domain >= TG_DOMAIN_RAW;
    if (python) g.latest.store(index_of(counters), std::memory_order_relaxed);
    if (counters->visits == 0) return;
    tg_position here{};
    const bool known = recorder().walker.position(&here) != 0;
    // Still in the call of native code in which it looked last: the line has not ended.
    if (!python && (!known || (here.frame == counters->looked_frame &&
                               here.instruction == counters->looked_instruction))) {
        if (counters->passes > 0) --counters->passes;
        return;
    }
    const bool ends = counters->visits > kVisits - kWholeVisits;
    --counters->visits;
    counters->looked_frame = here.frame;
    counters->looked_instruction = here.instruction;
    const int64_t faults = page_faults();
    if (faults == counters->faults) return;
    Charge charge;
    charge.way = Charge::Way::own;
    charge.caller = caller;
    charge.page.thread = counters->thread;
    if (look_as(charge, counters, ends, kVisitTries).whole) counters->faults = faults;
    if (footprint::due()) footprint::cross(counters, caller);
}

void sampled(const tg_walk& found, uint64_t pc) {
    heap::Counters* counters = heap::t_local.counters;
    if (!counters) return;
    const int64_t faults = page_faults();
    if (found.stack == kNone) {
        // A thread of a library: what it touches, it touches for the thread that waits for it.
        const int64_t nudged = g.nudged_at.load(std::memory_order_relaxed);
        if (faults - nudged < static_cast<int64_t>(kNoticeable)) return;
        g.nudged_at.store(faults, std::memory_order_relaxed);
        return hurry_latest();
    }
    if (found.gil == static_cast<uint8_t>(Gil::yes) ||
        g.latest.load(std::memory_order_relaxed) == kNone)
        g.latest.store(index_of(counters), std::memory_order_relaxed);
    if (faults == counters->faults) return;
    Charge charge;
    charge.way = Charge::Way::given;
    charge.ready = true;
    charge.page = {counters->thread, found.stack, found.state, pc};
    const Found seen = look_as(charge, counters, false, kSampleTries);
    if (seen.whole)
        counters->faults = faults;
    else
        watch(counters);  // it is looked at where the line ends, at the latest
    if (seen.came >= kNoticeable || !seen.whole) hurry(counters);
    if (footprint::due()) footprint::cross(counters, nullptr);
}

void begin(int64_t now_ns) { g.settling.begin(now_ns); }

void settle(bool charged) {
    if (!any()) return;
    Charge charge;
    if (charged && may_charge(&charge.page)) charge.way = Charge::Way::own;
    const TimeLimit limit = g.settling.take(kernel::monotonic_ns());
    const Found found = page_looks::all({&charge, true, Seeks::all, kTries, limit, true});
    if (found.late) spool::count(Loss::page_scans_cut);
}

void tick(int64_t now_ns) {
    const int64_t rest = kSweepCost * g.sweep_took_ns;
    if (!any() || now_ns - g.swept_ns < (rest > kSweepNs ? rest : kSweepNs)) return;
    const int64_t resident = footprint::resident_bytes();
    const int64_t moved = resident - g.swept_resident;
    constexpr int64_t kLeast = static_cast<int64_t>(kNoticeable * resident_pages::kPage);
    if (g.pending_ns == 0 && moved < kLeast && moved > -kLeast) return;
    // What was found first has a thread since: what there is now is younger. A program that touches
    // ever more memory has always some that is about to be found.
    const uint64_t claimed = g.claimed.load(std::memory_order_relaxed);
    const bool younger = claimed - g.claimed_before >= g.pending;
    const int64_t waited_ns = g.pending_ns == 0 || younger ? 0 : now_ns - g.pending_ns;
    // It is of no thread: then of the one that ran Python last, and probably waits for it.
    Charge charge;
    kernel::ThreadCpu seen{};
    const bool stands = waited_ns >= kPatienceNs && charge_latest(&charge, &seen);
    const bool unclaimed = !stands && waited_ns >= kEndOfPatienceNs;
    if (unclaimed) {
        charge.way = Charge::Way::given;
        charge.ready = true;
        charge.page = {kNone, kNone, TG_STACK_UNSEEN, 0};
    }
    const TimeLimit limit(kLongestSweepNs, true);
    const Found found = page_looks::all({&charge, stands || unclaimed, Seeks::all, kTries, limit,
                                         true, stands ? has_not_run : nullptr, &seen},
                                        &g.progress);
    g.swept_ns = kernel::monotonic_ns();
    g.sweep_took_ns = g.swept_ns - now_ns;
    if (stands) g.claimed.fetch_add(found.came, std::memory_order_relaxed);
    if (!stands && !unclaimed) g.left += found.came;
    const bool any_left = g.left >= kNoticeable;
    if (found.whole) g.left = 0;
    if (!any_left && (unclaimed ? !found.late : found.whole)) {
        g.pending_ns = 0;
        g.swept_resident = resident;
        return;
    }
    if (waited_ns == 0) {
        g.pending_ns = now_ns;
        g.pending = found.came;
        g.claimed_before = claimed;
    }
    hurry_latest();
}

void after_fork_in_child() {
    page_looks::after_fork_in_child();
    g.latest.store(kNone);
    g.nudged_at.store(0);
    g.pending_ns = g.swept_ns = 0;
    g.progress = {};
    g.left = 0;
    g.walk_hint = nullptr;
    g.walk_hint_tid = 0;
}

void forget() {
    while (any()) {
        const Hold hold(kTries);
        if (!hold || ranges::count() == 0) break;
        const Range range = ranges::at(0);
        page_looks::forget(range.begin, range.end);
        page_looks::cut(range.begin, range.end);
    }
    g_any.store(false, std::memory_order_relaxed);
    after_fork_in_child();
}

}  // namespace tachograph::reserves
