#include "memory/reserves.h"

#include "base/kernel.h"
#include "base/mixing.h"
#include "memory/blocks.h"
#include "memory/footprint.h"
#include "memory/points.h"
#include "memory/resident_pages.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "stacks/recorder.h"
#include "stacks/stack_capture.h"
#include "stacks/threads.h"

#include <sys/resource.h>
#include <cstring>

namespace tachograph::reserves {

std::atomic<bool> g_any{false};

namespace {

using resident_pages::kPage;
using resident_pages::kRegion;
using resident_pages::region_of;

constexpr size_t kMostRanges = 16 * 1024;
constexpr int kTries = 10'000;
constexpr int kVisitTries = 200;
constexpr uint32_t kActive = 8;
// A thread that has grown looks again at its next allocations: where the line ends that grew.
constexpr uint32_t kVisits = 64;
constexpr uint32_t kFewThreads = 256;
constexpr size_t kNoticeable = 64;                  // pages
constexpr size_t kWorthTelling = size_t{1} << 20;   // not what an allocator only prepares
constexpr uintptr_t kOwnSpan = uintptr_t{4} << 30;  // looked at as a whole by a program's thread
constexpr uintptr_t kGivenSpan = uintptr_t{8} << 30;
constexpr int64_t kSweepNs = 50'000'000;
constexpr int64_t kSweepCost = 20;  // at most one in so many parts of the time
constexpr int64_t kOwnCost = 100;
constexpr int64_t kEndCost = 10;
constexpr int64_t kPatienceNs = 200'000'000;
constexpr int64_t kEndOfPatienceNs = 1'000'000'000;

// Samples are followed, and there is room for some ten thousand; per second.
constexpr int64_t kFinestMean = 512 * 1024;
constexpr int64_t kCoarsestMean = int64_t{1} << 34;
constexpr uint32_t kMostSamples = 1200;
constexpr uint32_t kFewSamples = 300;
constexpr int64_t kAdaptNs = 1'000'000'000;

struct Range {
    uintptr_t begin;
    uintptr_t end;
    Owner owner{};
};

struct State {
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    // Held by the thread that has `busy`.
    Range* ranges = nullptr;  // sorted, apart from each other
    size_t count = 0;
    uintptr_t span = 0;              // of all of them
    uintptr_t active[kActive] = {};  // regions that grew lately
    uint32_t next_active = 0;
    Points points{};
    int64_t mean = kFinestMean;
    uint32_t samples = 0;  // since `adapted_ns`
    int64_t adapted_ns = 0;
    uint64_t random = 0;
    bool told_full = false;
    size_t used = 0;  // bytes that came, until they are told of
    bool told_used = false;

    std::atomic<uint32_t> latest{kNone};  // slot of the thread that ran Python last
    std::atomic<int64_t> own_sweep_ns{0};
    std::atomic<int64_t> own_sweep_took_ns{0};
    // The recorder's own thread's.
    int64_t swept_ns = 0;
    int64_t sweep_took_ns = 0;
    int64_t swept_resident = 0;
    int64_t pending_ns = 0;  // since when there is growth that is charged to no thread
    void* walk_hint = nullptr;
    pid_t walk_hint_tid = 0;
};
constinit State g;

// Not waited for by those who may look another time, nor without end by those who may not: a signal
// handler may have interrupted the holder on this very thread.
class Hold {
  public:
    explicit Hold(int tries) {
        for (; tries > 0; --tries) {
            held_ = !g.busy.test_and_set(std::memory_order_acquire);
            if (held_) return;
            kernel::call(SYS_sched_yield);
        }
    }
    ~Hold() {
        if (held_) g.busy.clear(std::memory_order_release);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    explicit operator bool() const { return held_; }

  private:
    bool held_ = false;
};

// ------------------------------------------------------------------ ranges

size_t first_behind(uintptr_t address) {
    size_t low = 0;
    size_t high = g.count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (g.ranges[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool insert(size_t at, const Range& range) {
    if (g.count >= kMostRanges) {
        spool::count(Loss::mappings_untracked);
        return false;
    }
    memmove(g.ranges + at + 1, g.ranges + at, (g.count - at) * sizeof(Range));
    g.ranges[at] = range;
    ++g.count;
    return true;
}

void cut(uintptr_t begin, uintptr_t end) {
    size_t at = first_behind(begin);
    while (at < g.count && g.ranges[at].begin < end) {
        Range& range = g.ranges[at];
        const Range before{range.begin, begin, range.owner};
        const Range behind{end, range.end, range.owner};
        g.span -= (behind.begin < behind.end ? end : range.end) -
                  (before.begin < before.end ? begin : range.begin);
        if (before.begin < before.end) {
            range = before;
            ++at;
            if (behind.begin < behind.end && !insert(at, behind)) g.span -= behind.end - end;
        } else if (behind.begin < behind.end) {
            range = behind;
        } else {
            --g.count;
            memmove(g.ranges + at, g.ranges + at + 1, (g.count - at) * sizeof(Range));
            continue;
        }
        ++at;
    }
}

// The first part of a range, within one region, that is not before `address`; false: none.
bool part_from(uintptr_t address, Range* part) {
    const size_t at = first_behind(address);
    if (at >= g.count) return false;
    const Range& range = g.ranges[at];
    part->owner = range.owner;
    part->begin = range.begin > address ? range.begin : address;
    const uintptr_t next = region_of(part->begin) + kRegion;
    part->end = range.end < next ? range.end : next;
    return true;
}

void activate(uintptr_t region) {
    for (const uintptr_t known : g.active)
        if (known == region) return;
    g.active[g.next_active++ % kActive] = region;
}

// ------------------------------------------------------------------ a look

// Who is charged with what came. The stack is looked for when it is needed.
struct Charge {
    enum class Way : uint8_t { own, given, none } way = Way::none;
    const void* caller = nullptr;
    Page page{};
    bool ready = false;

    void prepare() {
        ready = true;
        if (way != Way::own) return;
        tg_walk found = kNotWalked;
        stack_capture::walk(&found);
        page.stack = found.stack;
        page.stack_state = found.state;
        page.pc = stack_capture::outside_caller(caller);
    }
};

void follow(uintptr_t address, const Page& page) {
    blocks::Block block{};
    block.time_ns = kernel::monotonic_ns();
    block.size = block.requested = static_cast<int64_t>(kPage);
    block.mean = g.mean;
    block.pc = page.pc;
    block.thread = page.thread;
    block.stack = page.stack;
    block.domain = TG_DOMAIN_MAPPED;
    block.stack_state = page.stack_state;
    block.page = true;
    if (block.pc != 0) modules::saw(block.pc);
    blocks::follow(reinterpret_cast<const void*>(address), block);
}

// Fewer samples where there are too many in a second, more where there are few.
void adapt(int64_t now_ns) {
    const bool many = g.samples > kMostSamples;
    if (!many && now_ns - g.adapted_ns < kAdaptNs) return;
    if (many && g.mean < kCoarsestMean) g.mean *= 2;
    if (g.samples < kFewSamples && g.mean > kFinestMean) g.mean /= 2;
    g.samples = 0;
    g.adapted_ns = now_ns;
}

void came(void* context, uintptr_t page) {
    auto* charge = static_cast<Charge*>(context);
    g.points.next -= static_cast<int64_t>(kPage);
    if (g.points.next >= 0) return;
    if (charge->way != Charge::Way::none) {
        if (!charge->ready) charge->prepare();
        follow(page, charge->page);
        ++g.samples;
        adapt(kernel::monotonic_ns());
    }
    g.points = points_after(g.points, &g.random, g.mean);
}

void went(uintptr_t page) {
    const auto* block = reinterpret_cast<const void*>(page);
    if (blocks::maybe_followed(block)) blocks::died(block);
}

void count(const resident_pages::Change& change, bool learned) {
    const size_t came = learned && change.known ? change.came : 0;
    footprint::count_outside(TG_DOMAIN_MAPPED, static_cast<int64_t>(came * kPage),
                             static_cast<int64_t>(change.went * kPage));
    if (change.known || g.told_full) return;
    g.told_full = true;
    spool::count(Loss::mappings_untracked);
}

struct Found {
    size_t came = 0;
    bool whole = false;  // all that was asked for was looked at
};

resident_pages::Change compare(const Range& part, bool learn, Charge& charge) {
    Charge owner;
    if (part.owner.known) {
        owner.way = Charge::Way::given;
        owner.ready = true;
        owner.page = part.owner.page;
    }
    const auto change = resident_pages::compare(part.begin, part.end, learn,
                                                {came, went, part.owner.known ? &owner : &charge});
    count(change, learn);
    if (learn && !part.owner.known) g.used += change.came * kPage;
    if (g.used >= kWorthTelling && !g.told_used && recording()) {
        g.told_used = true;
        spool::count(Loss::allocator_pages);
    }
    if (change.came > 0) activate(region_of(part.begin));
    return change;
}

// Which pages of all reserves a look asks for: also those that are in memory, or what may have
// come.
enum class Seeks : uint8_t { all, growth };

// Part by part, so that no other thread waits for long.
Found look_at_all(Charge& charge, bool learn, Seeks seeks, int tries) {
    Found found;
    for (uintptr_t address = 0;;) {
        const Hold hold(tries);
        if (!hold) return found;
        Range part;
        if (!part_from(address, &part)) {
            found.whole = true;
            return found;
        }
        address = part.end;
        if (seeks == Seeks::growth && resident_pages::full(part.begin, part.end)) continue;
        found.came += compare(part, learn, charge).came;
    }
}

// Where it grew lately, and behind what is full.
Found look_at_active(Charge& charge, int tries) {
    Found found;
    const Hold hold(tries);
    if (!hold) return found;
    found.whole = true;
    for (uint32_t i = 0; i < kActive; ++i) {
        uintptr_t region = g.active[i];
        if (region == 0) continue;
        bool full = true;
        Range part;
        for (uintptr_t at = region; part_from(at, &part) && region_of(part.begin) == region;) {
            at = part.end;
            if (!resident_pages::full(part.begin, part.end))
                found.came += compare(part, true, charge).came;
            full = full && resident_pages::full(part.begin, part.end);
            if (full && at == region + kRegion) g.active[i] = region += kRegion;
        }
    }
    return found;
}

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

// At the end of a line that grew all is looked at; else what lies where nothing grew lately is
// looked at now and then. Not if it costs more than a part of the time.
Found look_as(Charge& charge, heap::Counters* counters, bool ends, int tries) {
    Found found = look_at_active(charge, tries);
    const int64_t now = kernel::monotonic_ns();
    const int64_t rest = now - g.own_sweep_ns.load(std::memory_order_relaxed);
    const int64_t cost = g.own_sweep_took_ns.load(std::memory_order_relaxed);
    if (found.whole && g.span <= kOwnSpan && rest > (ends ? kEndCost : kOwnCost) * cost) {
        found.came += look_at_all(charge, true, Seeks::growth, tries).came;
        const int64_t after = kernel::monotonic_ns();
        g.own_sweep_ns.store(after, std::memory_order_relaxed);
        g.own_sweep_took_ns.store(after - now, std::memory_order_relaxed);
    }
    if (found.came >= kNoticeable) counters->visits = kVisits;
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
}

// Where the thread that ran Python last stands, if it stands.
bool charge_latest(Charge* charge) {
    const uint32_t index = g.latest.load(std::memory_order_relaxed);
    if (index == kNone) return false;
    const threads::Thread* thread = threads::at(index);
    const pid_t tid = thread->tid.load(std::memory_order_acquire);
    if (tid <= 0) return false;
    if (tid != g.walk_hint_tid) g.walk_hint = nullptr;
    g.walk_hint_tid = tid;
    kernel::ThreadCpu seen = kernel::read_cpu(tid);
    tg_walk found = kNotWalked;
    recorder().walker.walk_other(tid, &g.walk_hint, kernel::has_not_run, &seen, &found);
    if (!kernel::has_not_run(&seen) || found.stack == kNone) return false;
    charge->way = Charge::Way::given;
    charge->ready = true;
    charge->page.thread = thread->id.load(std::memory_order_relaxed);
    charge->page.stack = found.stack;
    charge->page.stack_state = found.state;
    return true;
}

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

bool ready() {
    if (g.ranges) return true;
    if (!resident_pages::open() || !own_memory::map(&g.ranges, sizeof(Range) * kMostRanges))
        return false;
    g.random = mix(static_cast<uint64_t>(kernel::monotonic_ns()));
    g.points = first_points(&g.random, g.mean);
    return true;
}

}  // namespace

// ------------------------------------------------------------------ what the program does

void add(uintptr_t begin, uintptr_t end, const Owner& owner) {
    const Hold hold(kTries);
    if (!hold || !ready()) return spool::count(Loss::mappings_untracked);
    cut(begin, end);
    Charge unclaimed;
    count({.went = resident_pages::forget(begin, end, {came, went, &unclaimed})}, false);
    size_t at = first_behind(begin);
    // Neighbours are one range: reserves grow, and are taken in pieces.
    const auto joins = [&](size_t other) { return !owner.known && !g.ranges[other].owner.known; };
    if (at > 0 && g.ranges[at - 1].end == begin && joins(at - 1)) {
        g.ranges[--at].end = end;
    } else if (!insert(at, {begin, end, owner})) {
        return;
    }
    g.span += end - begin;
    if (at + 1 < g.count && g.ranges[at + 1].begin == end && joins(at + 1)) {
        g.ranges[at].end = g.ranges[at + 1].end;
        --g.count;
        memmove(g.ranges + at + 1, g.ranges + at + 2, (g.count - at - 1) * sizeof(Range));
    }
    activate(region_of(begin));
    g_any.store(true, std::memory_order_relaxed);
}

void remove(uintptr_t begin, uintptr_t end) {
    if (!any()) return;
    give_back(begin, end);
    const Hold hold(kTries);
    if (!hold) return spool::count(Loss::mappings_untracked);
    cut(begin, end);
    if (g.count == 0) g_any.store(false, std::memory_order_relaxed);
}

Owner caller_of(const void* caller) {
    Owner owner;
    if (!may_charge(&owner.page)) return owner;
    tg_walk found = kNotWalked;
    stack_capture::walk(&found);
    owner.known = found.stack != kNone;
    owner.page.stack = found.stack;
    owner.page.stack_state = found.state;
    owner.page.pc = stack_capture::outside_caller(caller);
    return owner;
}

bool holds(uintptr_t begin, uintptr_t end, Owner* owner) {
    if (!any()) return false;
    const Hold hold(kTries);
    if (!hold) return false;
    const size_t at = first_behind(begin);
    if (at >= g.count || g.ranges[at].begin > begin || end > g.ranges[at].end) return false;
    *owner = g.ranges[at].owner;
    return true;
}

void look_at(uintptr_t begin, uintptr_t end) {
    if (!any() || end - begin > kGivenSpan) return;
    const Hold hold(kTries);
    Range part;
    if (!hold || !part_from(begin, &part) || part.begin >= end) return;
    Charge charge;
    const bool mine = may_charge(&charge.page);
    if (mine) charge.way = Charge::Way::own;
    if (!mine && !part.owner.known) return;
    for (uintptr_t at = begin; part_from(at, &part) && part.begin < end; at = part.end) {
        if (part.end > end) part.end = end;
        compare(part, true, charge);
    }
}

void give_back(uintptr_t begin, uintptr_t end) {
    look_at(begin, end);  // what was touched and given back between two looks counts as well
    if (!any()) return;
    const Hold hold(kTries);
    if (!hold) return;  // the next look will find that they are gone
    Charge unclaimed;
    count({.went = resident_pages::forget(begin, end, {came, went, &unclaimed})}, false);
}

bool keep_stacks() {
    if (!any()) return true;
    const Hold hold(kTries);
    if (!hold) return false;
    uint32_t latest = kNone;
    for (size_t at = 0; at < g.count; ++at) {
        const Owner& owner = g.ranges[at].owner;
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
    const bool ends = counters->visits == kVisits;
    --counters->visits;
    const int64_t faults = page_faults();
    if (faults == counters->faults) return;
    tg_position here{};
    if (!python && !recorder().walker.position(&here)) return;
    Charge charge;
    charge.way = Charge::Way::own;
    charge.caller = caller;
    charge.page.thread = counters->thread;
    if (look_as(charge, counters, ends, kVisitTries).whole) counters->faults = faults;
    if (footprint::due()) footprint::cross(counters, caller);
}

void sampled(const tg_walk& found, uint64_t pc) {
    heap::Counters* counters = heap::t_local.counters;
    if (!counters || found.stack == kNone) return;
    if (found.gil == static_cast<uint8_t>(Gil::yes))
        g.latest.store(index_of(counters), std::memory_order_relaxed);
    const int64_t faults = page_faults();
    if (faults == counters->faults) return;
    Charge charge;
    charge.way = Charge::Way::given;
    charge.ready = true;
    charge.page = {counters->thread, found.stack, found.state, pc};
    const Found seen = look_as(charge, counters, false, 1);
    if (seen.whole) counters->faults = faults;
    if (seen.came >= kNoticeable) hurry(counters);
    if (footprint::due()) footprint::cross(counters, nullptr);
}

void settle(bool charged) {
    if (!any()) return;
    Charge charge;
    if (charged && may_charge(&charge.page)) charge.way = Charge::Way::own;
    look_at_all(charge, true, Seeks::all, kTries);
}

void tick(int64_t now_ns) {
    const int64_t rest = kSweepCost * g.sweep_took_ns;
    if (!any() || now_ns - g.swept_ns < (rest > kSweepNs ? rest : kSweepNs)) return;
    const int64_t resident = footprint::resident_bytes();
    const int64_t moved = resident - g.swept_resident;
    constexpr int64_t kLeast = static_cast<int64_t>(kNoticeable * kPage);
    if (g.pending_ns == 0 && moved < kLeast && moved > -kLeast) return;
    Charge charge;
    const bool impatient = g.pending_ns != 0 && now_ns - g.pending_ns >= kPatienceNs;
    // It is of no thread: then of the one that ran Python last, and probably waits for it.
    const bool learn =
        impatient && (charge_latest(&charge) || now_ns - g.pending_ns >= kEndOfPatienceNs);
    if (learn && charge.way == Charge::Way::none) {
        charge.way = Charge::Way::given;
        charge.ready = true;
        charge.page = {kNone, kNone, TG_STACK_UNSEEN, 0};
    }
    const Found found = look_at_all(charge, learn, Seeks::all, kTries);
    g.swept_ns = kernel::monotonic_ns();
    g.sweep_took_ns = g.swept_ns - now_ns;
    if (found.came < kNoticeable || learn) {
        g.pending_ns = 0;
        g.swept_resident = resident;
        return;
    }
    if (g.pending_ns == 0) g.pending_ns = now_ns;
    const uint32_t latest = g.latest.load(std::memory_order_relaxed);
    if (latest == kNone) return;
    heap::Counters* counters = footprint::counters(latest);
    __atomic_store_n(&counters->faults, -1, __ATOMIC_RELAXED);
    __atomic_store_n(&counters->visits, kVisits, __ATOMIC_RELAXED);
    hurry(counters);
}

void after_fork_in_child() {
    g.busy.clear();
    g.told_full = g.told_used = false;
    g.latest.store(kNone);
    g.pending_ns = g.swept_ns = 0;
    g.walk_hint = nullptr;
    g.walk_hint_tid = 0;
}

}  // namespace tachograph::reserves
