#include "spool/spool.h"
#include "spool/record.h"

#include "base/kernel.h"
#include "base/mapped_file.h"
#include "spool/fd_broker.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tachograph::spool {
namespace {

struct Segment {
    std::atomic<uint8_t*> base{nullptr};
    std::atomic<uint64_t> used{0};
    uint64_t size = 0;
};

// Current, next, and those that wait to be unmapped; more than three are never alive at once.
constexpr uint32_t kSegments = 8;

// Thousands of processes may live for a moment only, and a file's blocks are made before they are
// needed: the first segment is small, and the second one made for a process that stays.
constexpr uint64_t kFirstSegmentSize = 64 << 10;

// How long a recording command that does not answer is asked again for a segment, and how often; so
// often is tried, for as long as it takes, whether a full disk has room again.
constexpr int64_t kPatienceNs = 60'000'000'000;
constexpr int64_t kAskAgainNs = 1'000'000'000;

struct State {
    Segment segments[kSegments];
    std::atomic<uint32_t> current{0};   // sequence number
    std::atomic<uint32_t> prepared{0};  // highest sequence number that is mapped
    uint32_t unmapped = 0;              // sequence numbers below are unmapped (helper only)
    std::atomic<int64_t> writers{0};
    Control* control = nullptr;
    size_t control_size = 0;  // with what lies behind it
    uint64_t segment_size = 0;
    int64_t unanswered_ns = 0;  // helper only: when the recording command was first asked in vain
    int64_t asked_ns = 0;       // helper only: when a segment was last asked for in vain
    char prefix[512] = {};
};
constinit State g;

uint64_t size_of(uint32_t sequence) {
    return sequence == 0 && g.segment_size > kFirstSegmentSize ? kFirstSegmentSize : g.segment_size;
}

Segment& slot(uint32_t sequence) { return g.segments[sequence % kSegments]; }

void append_number(char* at, uint32_t value) {
    for (int digit = 5; digit >= 0; --digit, value /= 10)
        at[digit] = static_cast<char>('0' + value % 10);
}

struct Path {
    char text[sizeof State::prefix + 16];
};

Path segment_path(uint32_t sequence) {
    Path path;
    const size_t length = strlen(g.prefix);
    memcpy(path.text, g.prefix, length);
    path.text[length] = '.';
    append_number(path.text + length + 1, sequence);
    memcpy(path.text + length + 7, ".seg", 5);
    return path;
}

// Readers see it grow, whichever of two threads that went on at the same time comes last.
void publish_current(uint32_t sequence) {
    uint32_t* place = &g.control->current_segment;
    uint32_t seen = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (seen < sequence && !__atomic_compare_exchange_n(place, &seen, sequence, true,
                                                           __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

Path control_path() {
    Path path;
    const size_t length = strlen(g.prefix);
    memcpy(path.text, g.prefix, length);
    memcpy(path.text + length, ".ctl", 5);
    return path;
}

void use(uint32_t sequence, uint8_t* base) {
    auto* header = reinterpret_cast<SegmentHeader*>(base);
    memcpy(header->magic, kSegmentMagic, sizeof header->magic);
    header->sequence = sequence;
    header->size = static_cast<uint32_t>(size_of(sequence));
    header->pid = g.control->pid;
    header->start_ns = g.control->start_ns;

    Segment& segment = slot(sequence);
    segment.size = size_of(sequence);
    segment.used.store(kSegmentHeader, std::memory_order_relaxed);
    segment.base.store(base, std::memory_order_release);
    g.prepared.store(sequence, std::memory_order_release);
}

int prepare(uint32_t sequence) {
    const Path path = segment_path(sequence);
    uint8_t* base = nullptr;
    const uint64_t size = size_of(sequence);
    long error = mapped_file::create(path.text, size, &base);
    if (fd_broker::may_help(error))
        error = fd_broker::segment(error, g.control->start_ns, sequence, size, &base);
    if (error != 0) return static_cast<int>(error);
    use(sequence, base);
    return 0;
}

// The control file and the first segment, both or none.
long make_first(uint8_t* (&bases)[2]) {
    const Path control = control_path();
    long error = mapped_file::create(control.text, g.control_size, &bases[0]);
    if (error != 0) return error;
    error = mapped_file::create(segment_path(0).text, size_of(0), &bases[1]);
    if (error != 0) mapped_file::discard(control.text, bases[0], g.control_size);
    return error;
}

// What there is no room for now is counted, and may have room later: most disks are emptied again.
bool is_full(long error) { return error == ENOSPC || error == EDQUOT; }

// A recording command that does not answer may just be stopped or busy. Meanwhile there is room in
// the segments that were made before, or rows are dropped and counted.
int wait_for_answer() {
    const int64_t now = g.asked_ns = kernel::monotonic_ns();
    if (g.unanswered_ns == 0) g.unanswered_ns = now;
    return now - g.unanswered_ns < kPatienceNs ? 0 : EACCES;
}

}  // namespace

Control* control() { return g.control; }

bool stop_requested() { return __atomic_load_n(&g.control->stop_requested, __ATOMIC_ACQUIRE) != 0; }

BlockRecord* pending_blocks() {
    if (!g.control || g.control_size == kControlSize) return nullptr;
    return reinterpret_cast<BlockRecord*>(reinterpret_cast<uint8_t*>(g.control) + kControlSize);
}

uint64_t mapped_bytes() {
    uint64_t bytes = g.control_size;
    for (const Segment& segment : g.segments)
        if (segment.base.load(std::memory_order_acquire)) bytes += segment.size;
    return bytes;
}

void count(Loss loss, uint64_t n) {
    if (g.control)
        __atomic_fetch_add(&g.control->losses[static_cast<uint32_t>(loss)], n, __ATOMIC_RELAXED);
}

int open(const char* directory, uint64_t segment_size, int64_t start_ns, bool memory) {
    g.control_size = kControlSize + (memory ? kPendingSize : 0);
    g.segment_size = (segment_size + 4095) & ~uint64_t{4095};
    const pid_t pid = kernel::getpid();
    const int length = snprintf(g.prefix, sizeof g.prefix, "%s/%d-%lld", directory, pid,
                                static_cast<long long>(start_ns));
    if (length < 0 || static_cast<size_t>(length) >= sizeof g.prefix) return ENAMETOOLONG;

    uint8_t* bases[2] = {};
    long error = make_first(bases);
    if (fd_broker::may_help(error))
        error = fd_broker::process(error, start_ns, {g.control_size, size_of(0)}, bases);
    if (error != 0) return static_cast<int>(error);
    auto* made = reinterpret_cast<Control*>(bases[0]);
    made->major = 1;
    made->pid = pid;
    made->parent_pid = static_cast<int32_t>(kernel::call(SYS_getppid));
    made->start_ns = start_ns;
    made->start_utc_ns = kernel::clock_ns(CLOCK_REALTIME) - (kernel::monotonic_ns() - start_ns);
    made->segment_size = g.segment_size;
    made->state = static_cast<uint32_t>(ControlState::recording);
    g.control = made;
    use(0, bases[1]);
    // The magic goes in last: a control file without it is not one.
    memcpy(made->magic, kControlMagic, sizeof made->magic);
    return 0;
}

Control* leave() {
    for (Segment& segment : g.segments) {
        uint8_t* base = segment.base.exchange(nullptr);
        if (base) mapped_file::unmap(base, segment.size);
        segment.used.store(0, std::memory_order_relaxed);
    }
    Control* parents = g.control;
    g.control = nullptr;
    g.current.store(0);
    g.prepared.store(0);
    g.unmapped = 0;
    g.unanswered_ns = g.asked_ns = 0;
    g.writers.store(0);  // those of the parent's threads that were in the middle of a record
    return parents;
}

void unmap(Control* parents) {
    mapped_file::unmap(reinterpret_cast<uint8_t*>(parents), g.control_size);
}

Ticket reserve(Kind kind, size_t size) {
    const uint64_t length = padded(size);
    // `writers` tells the helper when no one can still hold a pointer into a retired segment.
    g.writers.fetch_add(1, std::memory_order_seq_cst);
    for (uint32_t attempt = 0; attempt < kSegments; ++attempt) {
        const uint32_t sequence = g.current.load(std::memory_order_seq_cst);
        Segment& segment = slot(sequence);
        uint8_t* base = segment.base.load(std::memory_order_acquire);
        if (!base || length > g.segment_size - kSegmentHeader) break;
        // Looked at first, so that a full segment's counter cannot wander off.
        if (segment.used.load(std::memory_order_relaxed) + length <= segment.size) {
            const uint64_t offset = segment.used.fetch_add(length, std::memory_order_relaxed);
            if (offset + length <= segment.size)
                return {base + offset,
                        record_header(kind, static_cast<uint32_t>(length), offset, sequence),
                        sequence};
        }
        if (g.prepared.load(std::memory_order_acquire) == sequence) break;
        uint32_t expected = sequence;
        if (g.current.compare_exchange_strong(expected, sequence + 1, std::memory_order_seq_cst))
            publish_current(sequence + 1);
    }
    g.writers.fetch_sub(1, std::memory_order_release);
    count(Loss::records_dropped);
    return {};
}

void commit(const Ticket& ticket) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(ticket.record), ticket.header, __ATOMIC_RELEASE);
    g.writers.fetch_sub(1, std::memory_order_release);
}

bool is_current(uint32_t sequence) { return g.current.load(std::memory_order_acquire) == sequence; }

bool in_first_moment() {
    return g.prepared.load(std::memory_order_relaxed) == 0 &&
           kernel::monotonic_ns() - g.control->start_ns < kMomentNs;
}

int maintain() {
    const uint32_t current = g.current.load(std::memory_order_seq_cst);
    // Retired segments first: their places in the ring are needed again.
    while (g.unmapped < current && g.writers.load(std::memory_order_seq_cst) == 0) {
        Segment& segment = slot(g.unmapped);
        uint8_t* base = segment.base.exchange(nullptr);
        if (base) mapped_file::unmap(base, segment.size);
        ++g.unmapped;
    }
    const uint32_t prepared = g.prepared.load(std::memory_order_acquire);
    const Segment& filled = slot(current);
    const bool half = filled.used.load(std::memory_order_relaxed) > filled.size / 2;
    const bool wanted = prepared == current ? half || !in_first_moment()
                                            : prepared == current + 1 && half && current > 0;
    if (!wanted || prepared + 1 - g.unmapped >= kSegments) return 0;
    if (g.asked_ns != 0 && kernel::monotonic_ns() - g.asked_ns < kAskAgainNs) return 0;
    const int error = prepare(prepared + 1);
    if (error == EAGAIN) return wait_for_answer();
    g.unanswered_ns = 0;
    g.asked_ns = is_full(error) ? kernel::monotonic_ns() : 0;
    if (is_full(error)) return 0;
    return half ? error : 0;  // what there is is filled first
}

int prepare_second() { return g.prepared.load() == 0 ? prepare(1) : 0; }

bool can_turn() {
    const uint32_t current = g.current.load(std::memory_order_relaxed);
    return current < __atomic_load_n(&g.control->segment_requested, __ATOMIC_ACQUIRE) &&
           current < g.prepared.load(std::memory_order_acquire);
}

void turn() {
    uint32_t current = g.current.load(std::memory_order_seq_cst);
    if (!can_turn()) return;
    // Another thread may have filled it at this moment and gone on.
    if (g.current.compare_exchange_strong(current, current + 1, std::memory_order_seq_cst))
        publish_current(current + 1);
}

}  // namespace tachograph::spool
