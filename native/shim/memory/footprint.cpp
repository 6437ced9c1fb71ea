#include "memory/footprint.h"

#include "base/kernel.h"
#include "base/kernel_text.h"
#include "base/pages.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "stacks/recorder.h"
#include "stacks/stack_capture.h"
#include "stacks/threads.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>

namespace tachograph::footprint {
namespace {

constexpr uint32_t kPathFrames = 64;
constexpr uint32_t kLooks = 64;
constexpr int64_t kBurstRows = 300;
constexpr int64_t kRowsPerSecond = 20;
constexpr int64_t kTickNs = 250'000'000;
constexpr int64_t kFlowNs = 1'000'000'000;
constexpr int64_t kSilenceNs = 10'000'000'000;
constexpr int64_t kNoticeable = 1 << 20;
constexpr int64_t kUnpublished = 16 * 1024;  // a quarter of what a thread may keep to itself
// Likewise; of a thread that has allocated and released more than 128 MiB, that part of it: where a
// large block grows in small steps, each of them would be noted.
constexpr int64_t kNoted = 32 * 1024;
constexpr int64_t kNotedPart = 4096;
constexpr int64_t kUnknown = INT64_MIN;

// Where a thread was at its last row, as far as has been seen since: which of those frames are
// still in the same execution of their line (Scalene 2023, section 3.3).
struct Path {
    tg_position frames[kPathFrames];
    uint32_t depth;
    uint32_t looks;  // that are left
};

struct Totals {
    Flow flows[kDomains] = {};
    int64_t net() const {
        int64_t sum = 0;
        for (const Flow& flow : flows) sum += flow.allocated - flow.freed;
        return sum;
    }
    int64_t allocated() const {
        int64_t sum = 0;
        for (const Flow& flow : flows) sum += flow.allocated;
        return sum;
    }
};

struct State {
    heap::Counters* counters = nullptr;  // one for each slot of `threads`
    Path* paths = nullptr;
    std::atomic<int64_t> outside[kDomains][2] = {};
    int64_t threshold = 0;
    std::atomic<int64_t> total{0};  // net bytes, of what has been published
    std::atomic<int64_t> highest{0};
    std::atomic<int64_t> total_at_row{0};
    std::atomic<bool> begun{false};

    // Held while a row is written.
    std::atomic_flag writing = ATOMIC_FLAG_INIT;
    Totals last;
    uint32_t crossed = kNone;  // the thread of the last row, if that is of a crossing
    int64_t held_before = 0;   // what was held at the beginning
    bool absolute = false;     // whether held_before is all, as far as is known
    bool held_before_known = true;
    int64_t rows_left = kBurstRows;
    int64_t rows_counted_ns = 0;

    // The recorder's own thread's.
    int64_t ticked_ns = 0;
    int64_t resident = 0;  // then
    int64_t told_ns = 0;
    int64_t told_resident = 0;
    int64_t told_total = 0;
    int64_t told_flow = 0;
};
constinit State g;

class Writing {
  public:
    Writing() : held_(!g.writing.test_and_set(std::memory_order_acquire)) {}
    ~Writing() {
        if (held_) g.writing.clear(std::memory_order_release);
    }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    explicit operator bool() const { return held_; }

  private:
    bool held_;
};

int64_t load(const int64_t& value) { return __atomic_load_n(&value, __ATOMIC_RELAXED); }

// Freed before allocated: a block that goes from one thread to another meanwhile cannot count as
// freed only.
Totals sum() {
    Totals totals{};
    const uint32_t high = threads::high_water();
    for (int domain = 0; domain < static_cast<int>(kDomains); ++domain) {
        Flow& flow = totals.flows[domain];
        flow.freed = g.outside[domain][1].load(std::memory_order_relaxed);
        for (uint32_t i = 0; i < high; ++i) flow.freed += load(g.counters[i].flows[domain].freed);
    }
    for (int domain = 0; domain < static_cast<int>(kDomains); ++domain) {
        Flow& flow = totals.flows[domain];
        flow.allocated = g.outside[domain][0].load(std::memory_order_relaxed);
        for (uint32_t i = 0; i < high; ++i)
            flow.allocated += load(g.counters[i].flows[domain].allocated);
    }
    return totals;
}

void raise_highest(int64_t total) {
    int64_t seen = g.highest.load(std::memory_order_relaxed);
    while (seen < total &&
           !g.highest.compare_exchange_weak(seen, total, std::memory_order_relaxed)) {
    }
}

// The difference to what was noted before: exact, also where two threads note at once.
int64_t newly(int64_t* noted, const int64_t& now) {
    const int64_t value = load(now);
    if (__atomic_load_n(noted, __ATOMIC_RELAXED) == value) return 0;
    return value - __atomic_exchange_n(noted, value, __ATOMIC_RELAXED);
}

void note_unrecorded(int domain, int64_t allocated, int64_t freed) {
    Control* control = spool::control();
    if (!control) return;
    int64_t* sums = control->unrecorded_bytes + size_t{2} * static_cast<size_t>(domain);
    if (allocated) __atomic_fetch_add(&sums[0], allocated, __ATOMIC_RELAXED);
    if (freed) __atomic_fetch_add(&sums[1], freed, __ATOMIC_RELAXED);
}

// The control file outlives the process, however that ends: with it the bytes survive that are in
// no row yet.
void note(heap::Counters* counters) {
    if (!g.begun.load(std::memory_order_relaxed)) return;
    for (int domain = 0; domain < static_cast<int>(kDomains); ++domain) {
        Flow& noted = counters->noted[domain];
        const Flow& now = counters->flows[domain];
        const int64_t freed = newly(&noted.freed, now.freed);
        note_unrecorded(domain, newly(&noted.allocated, now.allocated), freed);
    }
}

void note_all() {
    const uint32_t high = threads::high_water();
    for (uint32_t i = 0; i < high; ++i) note(&g.counters[i]);
}

// What the control file has, while a row that has all of it is written.
class Unrecorded {
  public:
    Unrecorded() : control_(spool::control()) {
        note_all();
        if (!control_) return;
        for (size_t i = 0; i < 2 * kDomains; ++i)
            sums_[i] = __atomic_load_n(&control_->unrecorded_bytes[i], __ATOMIC_RELAXED);
    }
    void is_recorded(int64_t footprint) const {
        if (!control_) return;
        for (size_t i = 0; i < 2 * kDomains; ++i)
            if (sums_[i])
                __atomic_fetch_sub(&control_->unrecorded_bytes[i], sums_[i], __ATOMIC_RELAXED);
        __atomic_store_n(&control_->footprint_bytes, footprint, __ATOMIC_RELAXED);
    }

  private:
    Control* control_;
    int64_t sums_[2 * kDomains] = {};
};

struct Row {
    MemoryEvent event = MemoryEvent::threshold;
    uint32_t thread = kNone;
    uint32_t stack = kNone;
    uint32_t kept_frames = kNone;
    uint8_t stack_state = TG_STACK_UNSEEN;
    uint64_t pc = 0;
    int64_t resident = -1;
    int64_t minor_faults = -1;
    int64_t major_faults = -1;
};

// `flows`: what happened since the last row.
bool write(const Row& row, int64_t time_ns, const Flow (&flows)[kDomains], int64_t net) {
    // Blocks are freed whose allocation was not seen: then more was held before than was known.
    if (g.absolute && g.held_before + net < 0) {
        if (g.held_before_known) spool::count(Loss::baseline_unknown);
        g.held_before_known = false;
        g.held_before = -net;
    }
    const int64_t highest = g.highest.exchange(net, std::memory_order_relaxed);
    g.total_at_row.store(g.total.load(std::memory_order_relaxed), std::memory_order_relaxed);
    g.crossed = row.event == MemoryEvent::threshold ? row.thread : kNone;
    const spool::Ticket ticket = spool::reserve(Kind::memory, sizeof(MemoryRecord));
    if (!ticket.record) {
        raise_highest(highest);
        return false;
    }
    auto* record = reinterpret_cast<MemoryRecord*>(ticket.record);
    record->time_ns = time_ns;
    record->footprint_bytes = g.absolute ? g.held_before + net : kUnknown;
    record->peak_bytes = g.absolute ? g.held_before + (highest > net ? highest : net) : kUnknown;
    for (size_t domain = 0; domain < kDomains; ++domain) record->flows[domain] = flows[domain];
    record->resident_bytes = row.resident;
    record->minor_faults = row.minor_faults;
    record->major_faults = row.major_faults;
    record->pc = row.pc;
    record->thread = row.thread;
    record->stack = row.stack;
    record->kept_frames = row.kept_frames;
    record->event = static_cast<uint8_t>(row.event);
    record->stack_state = row.stack_state;
    spool::commit(ticket);
    return true;
}

int64_t footprint_of(int64_t net) { return g.absolute ? g.held_before + net : kUnknown; }

void write_since_last(const Row& row) {
    const int64_t now = kernel::monotonic_ns();
    const Unrecorded unrecorded;
    const Totals totals = sum();
    Flow flows[kDomains] = {};
    for (size_t domain = 0; domain < kDomains; ++domain) {
        flows[domain].allocated = totals.flows[domain].allocated - g.last.flows[domain].allocated;
        flows[domain].freed = totals.flows[domain].freed - g.last.flows[domain].freed;
    }
    // What finds no room is in the next row.
    if (!write(row, now, flows, totals.net())) return;
    g.last = totals;
    unrecorded.is_recorded(footprint_of(totals.net()));
}

bool row_allowed() {
    const int64_t now = kernel::monotonic_ns();
    const int64_t earned = (now - g.rows_counted_ns) * kRowsPerSecond / 1'000'000'000;
    if (earned > 0) {
        g.rows_left = g.rows_left + earned < kBurstRows ? g.rows_left + earned : kBurstRows;
        g.rows_counted_ns = now;
    }
    if (g.rows_left <= 0) return false;
    --g.rows_left;
    return true;
}

// How many of the outermost frames are, for all that was seen, in the same execution of their line.
uint32_t kept(const Path& path, const tg_position* frames, uint32_t depth) {
    uint32_t same = 0;
    while (same < depth && same < path.depth && frames[same].frame == path.frames[same].frame) {
        const int32_t was = path.frames[same].instruction;
        const int32_t is = frames[same].instruction;
        if (is < was) break;
        ++same;
        if (is > was) break;  // what it calls now is another call
    }
    return same;
}

Path* path_of(const heap::Counters* counters) { return &g.paths[counters - g.counters]; }

void rusage_into(Row* row) {
    rusage usage{};
    if (kernel::call(SYS_getrusage, RUSAGE_SELF, kernel::address(&usage)) != 0) return;
    row->minor_faults = usage.ru_minflt;
    row->major_faults = usage.ru_majflt;
}

// The first row: what is held by then counts as allocated. What a domain has freed beyond what it
// allocated came from another one, before domains were told apart.
void write_start() {
    const Totals totals = sum();
    Flow flows[kDomains] = {};
    int64_t owed = 0;
    for (size_t domain = 0; domain < kDomains; ++domain) {
        int64_t held = totals.flows[domain].allocated - totals.flows[domain].freed;
        if (domain == TG_DOMAIN_OBJ) held += g.held_before;
        flows[domain].allocated = held > 0 ? held : 0;
        owed += held < 0 ? -held : 0;
    }
    for (size_t domain = 0; domain < kDomains; ++domain) {
        const int64_t part = owed < flows[domain].allocated ? owed : flows[domain].allocated;
        flows[domain].allocated -= part;
        owed -= part;
    }
    g.last = totals;
    const int64_t net = totals.net();
    g.total.store(net, std::memory_order_relaxed);
    g.highest.store(net, std::memory_order_relaxed);
    g.rows_counted_ns = kernel::monotonic_ns();
    Row row;
    row.event = MemoryEvent::start;
    row.resident = g.told_resident = resident_bytes();
    rusage_into(&row);
    g.told_total = net;
    g.told_flow = totals.allocated();
    g.told_ns = g.ticked_ns = g.rows_counted_ns;
    for (uint32_t i = 0; i < threads::high_water(); ++i) {
        for (size_t domain = 0; domain < kDomains; ++domain)
            g.counters[i].noted[domain] = g.counters[i].flows[domain];
    }
    const bool written = write(row, g.rows_counted_ns, flows, net);
    if (Control* control = spool::control(); control && written)
        control->footprint_bytes = footprint_of(net);
    g.begun.store(true, std::memory_order_release);
}

}  // namespace

bool open(int64_t threshold) {
    g.threshold = threshold;
    return (g.counters ||
            own_memory::map(&g.counters, sizeof(heap::Counters) * threads::kMostThreads)) &&
           (g.paths || own_memory::map(&g.paths, sizeof(Path) * threads::kMostThreads));
}

int64_t resident_bytes() {
    char text[128];
    read_text("/proc/self/statm", text, sizeof text);
    // "size resident shared ...", in pages
    const char* resident = strchr(text, ' ');
    if (!resident) return -1;
    int64_t count;
    return read_decimal(resident + 1, &count) > resident + 1
               ? count * static_cast<int64_t>(pages::size())
               : -1;
}

heap::Counters* counters(uint32_t index) { return &g.counters[index]; }

void count_outside(int domain, int64_t allocated, int64_t freed) {
    if (allocated) g.outside[domain][0].fetch_add(allocated, std::memory_order_relaxed);
    if (freed) g.outside[domain][1].fetch_add(freed, std::memory_order_relaxed);
    if (g.begun.load(std::memory_order_relaxed)) note_unrecorded(domain, allocated, freed);
    const int64_t net = allocated - freed;
    raise_highest(g.total.fetch_add(net, std::memory_order_relaxed) + net);
}

bool due() {
    const int64_t moved =
        g.total.load(std::memory_order_relaxed) - g.total_at_row.load(std::memory_order_relaxed);
    return g.begun.load(std::memory_order_relaxed) &&
           (moved >= g.threshold || moved <= -g.threshold);
}

bool publish(heap::Counters* counters, bool all) {
    int64_t net = 0, bytes = 0;
    for (const Flow& flow : counters->flows) {
        net += flow.allocated - flow.freed;
        bytes += flow.allocated + flow.freed;
    }
    const int64_t noted = counters->noted_bytes;
    if (all || bytes - noted >= std::max(kNoted, noted / kNotedPart)) {
        counters->noted_bytes = bytes;
        note(counters);
    }
    const int64_t more = net - counters->published;
    // What comes and goes at once: the total, which other threads store to as well, stays as it is.
    if (!all && more > -kUnpublished && more < kUnpublished) return due();
    counters->published = net;
    raise_highest(g.total.fetch_add(more, std::memory_order_relaxed) + more);
    return due();
}

void cross(heap::Counters* counters, const void* caller) {
    const Writing writing;
    if (!writing) return;
    // A sample's signal came before us, and its row says what ours would.
    if (!due() && g.crossed == counters->thread) return;
    if (!row_allowed()) return spool::count(Loss::crossings_merged);
    Row row;
    tg_position frames[kPathFrames];
    tg_walk found = kNotWalked;
    found.positions = frames;
    found.room = kPathFrames;
    stack_capture::walk(&found);
    row.thread = counters->thread;
    row.stack = found.stack;
    row.stack_state = found.state;
    row.pc = stack_capture::outside_caller(caller);
    if (row.pc != 0) modules::saw(row.pc);
    Path* path = path_of(counters);
    if (found.depth > 0) {
        row.kept_frames = kept(*path, frames, found.depth);
        for (uint32_t i = 0; i < found.depth; ++i) path->frames[i] = frames[i];
        path->looks = kLooks;
    }
    path->depth = found.depth;
    write_since_last(row);
}

bool looking(const heap::Counters* counters) { return path_of(counters)->looks > 0; }

void look(heap::Counters* counters) {
    Path* path = path_of(counters);
    --path->looks;
    tg_position here{};
    if (!recorder().walker.position(&here)) return;
    for (uint32_t i = path->depth; i-- > 0;) {
        if (path->frames[i].frame != here.frame) continue;
        // Back to an earlier place: the line that it was in then is over.
        const bool again = here.instruction < path->frames[i].instruction;
        path->frames[i].instruction = here.instruction;
        path->depth = again ? i : i + 1;
        return;
    }
}

void begin(int64_t small, bool known) {
    const Writing writing;
    if (!writing) return;
    g.held_before = small >= 0 ? small : 0;
    g.absolute = small >= 0;
    g.held_before_known = known;
    write_start();
}

void inherit() {
    g.writing.clear();  // one of the parent's threads may have held it
    g.begun.store(false);
    const Totals totals = sum();
    for (size_t domain = 0; domain < kDomains; ++domain) {
        g.outside[domain][0].store(totals.flows[domain].allocated);
        g.outside[domain][1].store(totals.flows[domain].freed);
    }
    kernel::clear(g.counters, sizeof(heap::Counters) * threads::kMostThreads);
    kernel::clear(g.paths, sizeof(Path) * threads::kMostThreads);
    g.rows_left = kBurstRows;
}

void forget() {
    g.begun.store(false);
    g.writing.clear();
    for (auto& outside : g.outside)
        for (auto& bytes : outside) bytes.store(0);
    kernel::clear(g.counters, sizeof(heap::Counters) * threads::kMostThreads);
    kernel::clear(g.paths, sizeof(Path) * threads::kMostThreads);
    g.total.store(0);
    g.highest.store(0);
    g.total_at_row.store(0);
    g.last = {};
    g.held_before = 0;
    g.absolute = false;
    g.held_before_known = true;
    g.rows_left = kBurstRows;
}

void begin_again() {
    const Writing writing;
    if (writing) write_start();
}

void mark() {
    const Writing writing;
    if (!writing || !g.begun.load(std::memory_order_acquire)) return;
    Row row;
    row.event = MemoryEvent::tick;
    row.resident = resident_bytes();
    rusage_into(&row);
    write_since_last(row);
}

bool tick_due(int64_t now_ns) {
    if (!g.begun.load(std::memory_order_acquire) || now_ns - g.ticked_ns < kTickNs) return false;
    g.ticked_ns = now_ns;
    note_all();
    g.resident = resident_bytes();
    const int64_t total = g.total.load(std::memory_order_relaxed);
    const auto moved = [](int64_t a, int64_t b) {
        return a - b >= kNoticeable || b - a >= kNoticeable;
    };
    if (moved(g.resident, g.told_resident) || moved(total, g.told_total)) return true;
    // What comes and goes again is in no row yet, and would be in none if the process were killed.
    if (now_ns - g.told_ns < kFlowNs) return false;
    return now_ns - g.told_ns >= kSilenceNs || sum().allocated() - g.told_flow >= kNoticeable;
}

void tick() {
    const Writing writing;
    if (!writing) return;
    g.told_ns = g.ticked_ns;
    g.told_resident = g.resident;
    g.told_total = g.total.load(std::memory_order_relaxed);
    Row row;
    row.event = MemoryEvent::tick;
    row.resident = g.resident;
    rusage_into(&row);
    write_since_last(row);
    g.told_flow = g.last.allocated();
}

void finish() {
    if (!g.begun.exchange(false)) return;
    // Waited for, but not without end: a thread that was killed in the middle never leaves.
    for (int tries = 0; tries < 1000; ++tries) {
        const Writing writing;
        if (!writing) {
            kernel::call(SYS_sched_yield);
            continue;
        }
        Row row;
        row.event = MemoryEvent::end;
        row.resident = resident_bytes();
        rusage_into(&row);
        write_since_last(row);
        return;
    }
}

}  // namespace tachograph::footprint
