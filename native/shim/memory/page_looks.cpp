#include "memory/page_looks.h"

#include "base/bounded_lock.h"
#include "base/kernel.h"
#include "memory/blocks.h"
#include "memory/footprint.h"
#include "memory/points.h"
#include "memory/range_table.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "stacks/recorder.h"
#include "stacks/stack_capture.h"
#include "tachograph/mixing.h"

#include <atomic>

namespace tachograph::page_looks {

namespace ranges {
namespace {

constexpr size_t kMost = 16 * 1024;

struct State {
    RangeTable<Range, kMost> ranges;
    uintptr_t span = 0;
};
constinit State g;

}  // namespace

bool open() { return g.ranges.open(); }

size_t count() { return g.ranges.count(); }

uintptr_t span() { return g.span; }

const Range& at(size_t index) { return g.ranges[index]; }

const Range* holding(uintptr_t begin, uintptr_t end) {
    const size_t at = g.ranges.first_behind(begin);
    const bool there =
        at < g.ranges.count() && g.ranges[at].begin <= begin && end <= g.ranges[at].end;
    return there ? &g.ranges[at] : nullptr;
}

bool part_from(uintptr_t address, Range* part) {
    const size_t at = g.ranges.first_behind(address);
    if (at >= g.ranges.count()) return false;
    const Range& range = g.ranges[at];
    part->owner = range.owner;
    part->begin = range.begin > address ? range.begin : address;
    const uintptr_t next = resident_pages::part_of(part->begin) + resident_pages::kPart;
    part->end = range.end < next ? range.end : next;
    return true;
}

const Range* first_behind(uintptr_t address) {
    const size_t at = g.ranges.first_behind(address);
    return at < g.ranges.count() ? &g.ranges[at] : nullptr;
}

bool add(const Range& range) {
    size_t at = g.ranges.first_behind(range.begin);
    const auto joins = [&](size_t other) {
        return !range.owner.known && !g.ranges[other].owner.known;
    };
    if (at > 0 && g.ranges[at - 1].end == range.begin && joins(at - 1)) {
        g.ranges[--at].end = range.end;
    } else if (!g.ranges.insert(at, range)) {
        return false;
    }
    g.span += range.end - range.begin;
    if (at + 1 < g.ranges.count() && g.ranges[at + 1].begin == range.end && joins(at + 1)) {
        g.ranges[at].end = g.ranges[at + 1].end;
        g.ranges.erase(at + 1);
    }
    return true;
}

void cut(uintptr_t begin, uintptr_t end) {
    size_t at = g.ranges.first_behind(begin);
    while (at < g.ranges.count() && g.ranges[at].begin < end) {
        Range& range = g.ranges[at];
        const Range before{range.begin, begin, range.owner};
        const Range behind{end, range.end, range.owner};
        g.span -= (behind.begin < behind.end ? end : range.end) -
                  (before.begin < before.end ? begin : range.begin);
        if (before.begin < before.end) {
            range = before;
            ++at;
            if (behind.begin < behind.end && !g.ranges.insert(at, behind))
                g.span -= behind.end - end;
        } else if (behind.begin < behind.end) {
            range = behind;
        } else {
            g.ranges.erase(at);
            continue;
        }
        ++at;
    }
}

}  // namespace ranges

namespace {

using resident_pages::kPage;
using resident_pages::kRegion;
using resident_pages::region_of;

// The sample of the pages that came: each stands for others of its look, and is followed like a
// block until it is gone. Not for several threads at once: the caller has the lock.
namespace samples {

// Samples are followed, and there is room for some ten thousand; per second.
constexpr int64_t kFinestMean = 512 * 1024;
constexpr int64_t kCoarsestMean = int64_t{1} << 34;
constexpr uint32_t kMostSamples = 1200;
constexpr uint32_t kFewSamples = 300;
constexpr int64_t kAdaptNs = 1'000'000'000;

struct State {
    Points points{};
    int64_t mean = kFinestMean;
    uint32_t samples = 0;  // since `adapted_ns`
    int64_t adapted_ns = 0;
    uint64_t random = 0;
};
constinit State g;

// Fewer samples where there are too many in a second, more where there are few.
void adapt(int64_t now_ns) {
    const bool many = g.samples > kMostSamples;
    if (!many && now_ns - g.adapted_ns < kAdaptNs) return;
    if (many && g.mean < kCoarsestMean) g.mean *= 2;
    if (g.samples < kFewSamples && g.mean > kFinestMean) g.mean /= 2;
    g.samples = 0;
    g.adapted_ns = now_ns;
}

void open() {
    g.random = mix(static_cast<uint64_t>(kernel::monotonic_ns()));
    g.points = first_points(&g.random, g.mean);
}

// A page has come. True: it is in the sample, and `follow` is due if it is charged to anything.
bool draw() {
    g.points.next -= static_cast<int64_t>(kPage);
    return g.points.next < 0;
}

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
    ++g.samples;
    adapt(block.time_ns);
}

// A sample was followed, or not: the way to the next one begins.
void next() { g.points = points_after(g.points, &g.random, g.mean); }

bool followed(uintptr_t page) {
    return blocks::maybe_followed(reinterpret_cast<const void*>(page));
}

void went(uintptr_t page) { blocks::died(reinterpret_cast<const void*>(page)); }

}  // namespace samples

constexpr int kAnswers = 8;
constexpr uint32_t kActive = 8;
constexpr int kAhead = 64;                         // regions, or parts of those that are known
constexpr size_t kWorthTelling = size_t{1} << 20;  // not what an allocator only prepares

struct State {
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    // Held by the thread that has `busy`.
    bool open = false;
    uint64_t changes = 0;            // of the ranges, or of what is known of their pages
    uintptr_t active[kActive] = {};  // regions that grew lately
    uint32_t next_active = 0;
    bool told_full = false;
    size_t used = 0;  // bytes that came, until they are told of
    bool told_used = false;

    std::atomic<uintptr_t> span{0};
};
constinit State g;

__thread bool t_holds __attribute__((tls_model("initial-exec"))) = false;

bool open() {
    if (g.open) return true;
    if (!resident_pages::open() || !ranges::open()) return false;
    samples::open();
    g.open = true;
    return true;
}

void activate(uintptr_t region) {
    for (const uintptr_t known : g.active)
        if (known == region) return;
    g.active[g.next_active++ % kActive] = region;
}

// A part of a look, and what came and went in it that is not in the counters yet.
//
// It is counted at each page of the sample, so that a row of the counters which another thread
// writes meanwhile has the births and deaths of the sample that are older than it, and no others.
class Tally {
  public:
    explicit Tally(const Charge* charge) : charge_(charge) {}
    ~Tally() { count(); }
    Tally(const Tally&) = delete;
    Tally& operator=(const Tally&) = delete;
    resident_pages::Visitor visitor() { return {came, went, this}; }

  private:
    static void came(void* context, uintptr_t page) {
        auto& tally = *static_cast<Tally*>(context);
        ++tally.came_;
        if (!samples::draw()) return;
        tally.count();
        if (tally.charge_->way != Charge::Way::none) samples::follow(page, tally.charge_->page);
        samples::next();
    }
    static void went(void* context, uintptr_t page) {
        auto& tally = *static_cast<Tally*>(context);
        ++tally.went_;
        if (!samples::followed(page)) return;
        tally.count();
        samples::went(page);
    }
    void count() {
        footprint::count_outside(TG_DOMAIN_MAPPED, static_cast<int64_t>(came_ * kPage),
                                 static_cast<int64_t>(went_ * kPage));
        came_ = went_ = 0;
    }

    const Charge* charge_;
    size_t came_ = 0;  // pages
    size_t went_ = 0;
};

enum class Step : uint8_t { done, again, nothing_there, ended };

void compare(const Range& part, const resident_pages::Answer& answer, const Look& look,
             Found* found) {
    Charge owner;
    if (part.owner.known) {
        owner.way = Charge::Way::given;
        owner.page = part.owner.page;
    }
    Tally tally(part.owner.known ? &owner : look.charge);
    const auto change =
        resident_pages::compare(part.begin, part.end, answer, look.learn, tally.visitor());
    if (change.went > 0 || (look.learn && change.came > 0)) ++g.changes;
    if (!change.known && !g.told_full) {
        g.told_full = true;
        spool::count(Loss::mappings_untracked);
    }
    if (look.learn && !part.owner.known) g.used += change.came * kPage;
    if (g.used >= kWorthTelling && !g.told_used && recording()) {
        g.told_used = true;
        spool::count(Loss::allocator_pages);
    }
    if (change.came > 0) activate(region_of(part.begin));
    found->came += change.came;
}

// Looks at the first part that is not before `*at` and begins before `end`; `*at` is its end then.
Step try_next_part(uintptr_t* at, uintptr_t end, const Look& look, Found* found) {
    Range part;
    uint64_t changes;
    {
        const Hold hold(look.tries);
        if (!hold) return Step::again;
        if (!ranges::part_from(*at, &part) || part.begin >= end) return Step::nothing_there;
        if (part.end > end) part.end = end;
        changes = g.changes;
        const bool known = look.seeks == Seeks::growth
                               ? resident_pages::full(part.begin, part.end)
                               : resident_pages::empty(part.begin, part.end);
        if (known) {
            *at = part.end;
            return Step::done;
        }
    }
    const resident_pages::Answer answer = resident_pages::ask(part.begin, part.end);
    if (look.still && !look.still(look.context)) return Step::ended;
    Charge& charge = *look.charge;
    for (;;) {
        {
            const Hold hold(look.tries);
            if (!hold || g.changes != changes) return Step::again;
            if (!look.learn || charge.ready || part.owner.known ||
                resident_pages::news(part.begin, part.end, answer) == 0) {
                compare(part, answer, look, found);
                *at = part.end;
                return Step::done;
            }
        }
        charge.prepare();
    }
}

// The parts that begin in [*at, end), one after the other. `*at` is how far it has come.
Found parts(uintptr_t* at, uintptr_t end, const Look& look) {
    Found found;
    int answers = 0;
    while (*at < end) {
        found.late = look.limit.over();
        found.whole = !found.late;
        if (found.late) break;
        const Step step = try_next_part(at, end, look, &found);
        if (step == Step::nothing_there) break;
        answers = step == Step::again ? answers + 1 : 0;
        found.whole = step != Step::ended && answers < kAnswers;
        if (!found.whole) break;
    }
    return found;
}

// Regions of which any page is known to be in memory.
Found looked_for_decline(const Look& look, size_t* place) {
    Found found;
    for (;;) {
        const size_t before = *place;
        uintptr_t at;
        {
            const Hold hold(look.tries);
            if (!hold) return {found.came, false};
            at = resident_pages::next_region(place);
        }
        if (at == 0) return found;
        found.add(parts(&at, region_of(at) + kRegion, look));
        if (found.whole) continue;
        *place = before;
        return found;
    }
}

// Parts that a scan for growth leaves out: those that are full, or all of which any page is known,
// as they have just been asked for.
enum class Without : uint8_t { full, known };

bool left_out(const Range& part, Without without) {
    return without == Without::full ? resident_pages::full(part.begin, part.end)
                                    : !resident_pages::empty(part.begin, part.end);
}

// Where the first part behind `at` begins that is left out, at most `end`. Not looked for without
// end, as terabytes may be reserved.
uintptr_t first_left_out(uintptr_t at, uintptr_t end, Without without) {
    for (int steps = 0; steps < kAhead && at < end; ++steps) {
        const uintptr_t next = resident_pages::any(region_of(at))
                                   ? resident_pages::part_of(at) + resident_pages::kPart
                                   : region_of(at) + kRegion;
        const Range part{at, next < end ? next : end};
        if (left_out(part, without)) return at;
        at = part.end;
    }
    return end;
}

// What is to be scanned of [begin, end): the first part that is reserved and not left out, and how
// long it goes on so; false: there is nothing more.
bool next_to_scan(uintptr_t* begin, uintptr_t* end, Without without, int tries, bool* held) {
    const Hold hold(tries);
    *held = static_cast<bool>(hold);
    Range part;
    do {
        if (!hold || !ranges::part_from(*begin, &part) || part.begin >= *end) return false;
        *begin = part.end;
    } while (left_out(part, without));
    *begin = part.begin;
    const uintptr_t reserved = ranges::first_behind(*begin)->end;
    *end = first_left_out(*begin, reserved < *end ? reserved : *end, without);
    return true;
}

// Parts with pages in memory that are not known of. `reached`, if any, is how far it has come.
Found growth_by(PageScan* scan, uintptr_t begin, uintptr_t end, const Look& look, Without without,
                uintptr_t* reached) {
    Found found;
    uintptr_t at = begin;
    while (found.whole && at < end) {
        if (reached) *reached = at;
        uintptr_t until = end;
        bool held;
        if (!next_to_scan(&at, &until, without, look.tries, &held)) {
            found.whole = held;
            break;
        }
        const PageScan::Run run = scan->next(at, until, look.limit);
        found.late = scan->late();
        found.whole = !found.late;
        if (!run.any()) {
            at = until;
            continue;
        }
        // Whole parts, of which the kernel is asked at once.
        const uintptr_t part = resident_pages::part_of(run.begin);
        const uintptr_t behind = resident_pages::part_of(run.end - 1) + resident_pages::kPart;
        at = part > at ? part : at;
        found.add(parts(&at, behind < until ? behind : until, look));
    }
    return found;
}

// Whether nothing more can come of a region, and what lies behind it may be next.
bool full(uintptr_t region) {
    Range part;
    uintptr_t at = region;
    while (ranges::part_from(at, &part) && region_of(part.begin) == region) {
        if (!resident_pages::full(part.begin, part.end)) return false;
        at = part.end;
    }
    return at == region + kRegion;
}

}  // namespace

Hold::Hold(int tries) {
    if (t_holds) return;
    t_holds = true;
    held_ = acquire(g.busy, tries);
    t_holds = held_;
}

Hold::~Hold() {
    if (!held_) return;
    release(g.busy);
    t_holds = false;
}

void Charge::prepare() {
    ready = true;
    if (way != Way::own) return;
    tg_walk found = kNotWalked;
    stack_capture::walk(&found);
    page.stack = found.stack;
    page.stack_state = found.state;
    page.pc = stack_capture::outside_caller(caller);
}

Found growth(uintptr_t begin, uintptr_t end, const Look& look) {
    // So little is looked at as soon as it is scanned.
    if (!look.opens && end - begin <= kRegion) return parts(&begin, end, look);
    PageScan scan(look.opens);
    return growth_by(&scan, begin, end, look, Without::full, nullptr);
}

Found all(const Look& look, Progress* progress) {
    Progress fresh;
    if (!progress) progress = &fresh;
    Found found;
    if (look.seeks == Seeks::all && progress->at == 0) {
        Look decline = look;
        decline.seeks = Seeks::decline;
        found = looked_for_decline(decline, &progress->region);
    }
    if (!found.whole) return found;
    Look grows = look;
    grows.seeks = Seeks::growth;
    if (!look.opens) {
        // mincore is asked of each part that is not full. To scan with it before would cost more.
        found.add(parts(&progress->at, ~uintptr_t{0}, grows));
        if (found.whole) *progress = {};
        return found;
    }
    const Without without = look.seeks == Seeks::all ? Without::known : Without::full;
    PageScan scan(look.opens);
    found.add(growth_by(&scan, progress->at, ~uintptr_t{0}, grows, without, &progress->at));
    if (found.whole) *progress = {};
    return found;
}

Found active(const Look& look) {
    Found found;
    for (uint32_t i = 0; i < kActive; ++i) {
        uintptr_t region;
        {
            const Hold hold(look.tries);
            if (!hold) return {found.came, false};
            region = g.active[i];
        }
        while (region != 0) {
            found.add(growth(region, region + kRegion, look));
            if (found.late) return found;
            const Hold hold(look.tries);
            if (!hold) return {found.came, false};
            if (g.active[i] != region || !full(region)) break;
            g.active[i] = region += kRegion;
        }
    }
    return found;
}

uintptr_t span() { return g.span.load(std::memory_order_relaxed); }

bool add(const Range& range) {
    if (!open()) {
        spool::count(Loss::mappings_untracked);
        return false;
    }
    cut(range.begin, range.end);
    forget(range.begin, range.end);
    if (!ranges::add(range)) return false;
    g.span.store(ranges::span(), std::memory_order_relaxed);
    activate(region_of(range.begin));
    return true;
}

void cut(uintptr_t begin, uintptr_t end) {
    ranges::cut(begin, end);
    g.span.store(ranges::span(), std::memory_order_relaxed);
    ++g.changes;
}

void forget(uintptr_t begin, uintptr_t end) {
    const Charge unclaimed;
    ++g.changes;
    Tally tally(&unclaimed);
    resident_pages::forget(begin, end, tally.visitor());
}

void after_fork_in_child() {
    g.busy.clear();
    t_holds = false;
    g.told_full = g.told_used = false;
}

}  // namespace tachograph::page_looks
