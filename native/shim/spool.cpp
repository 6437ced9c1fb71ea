#include "spool.h"

#include "kernel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tachograph::spool {
namespace {

struct Segment {
    std::atomic<uint8_t*> base{nullptr};
    std::atomic<uint64_t> used{0};
    uint32_t sequence = 0;
};

// Current, next, and those that wait to be unmapped; more than three are never alive at once.
constexpr uint32_t kSegments = 8;

struct State {
    Segment segments[kSegments];
    std::atomic<uint32_t> current{0};   // sequence number
    std::atomic<uint32_t> prepared{0};  // highest sequence number that is mapped
    uint32_t unmapped = 0;              // sequence numbers below are unmapped (helper only)
    std::atomic<int64_t> writers{0};
    Control* control = nullptr;
    size_t control_size = 0;  // with what lies behind it
    uint64_t segment_size = 0;
    char prefix[512] = {};
};
constinit State g;

Segment& slot(uint32_t sequence) { return g.segments[sequence % kSegments]; }

// Blocks are allocated here, so that a full disk is an error now and never a SIGBUS later.
long create_mapped(const char* path, uint64_t size, uint8_t** base) {
    const long fd = kernel::call(SYS_openat, AT_FDCWD, kernel::address(path),
                                 O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return -fd;
    long failed = kernel::call(SYS_fallocate, fd, 0, 0, static_cast<long>(size));
    if (failed == -EOPNOTSUPP || failed == -ENOSYS) {
        // No fallocate here: writing zeros allocates the blocks as well.
        static const uint8_t zeros[4096] = {};
        failed = 0;
        for (uint64_t at = 0; at < size && failed == 0; at += sizeof zeros) {
            const long wrote = kernel::call(SYS_pwrite64, fd, kernel::address(zeros), sizeof zeros,
                                            static_cast<long>(at));
            if (wrote != static_cast<long>(sizeof zeros)) failed = wrote < 0 ? wrote : -ENOSPC;
        }
    }
    long mapped = 0;
    if (failed == 0) {
        mapped = kernel::call(SYS_mmap, 0, static_cast<long>(size), PROT_READ | PROT_WRITE,
                              MAP_SHARED, fd, 0);
        if (mapped < 0 && mapped > -4096) failed = mapped;
    }
    kernel::call(SYS_close, fd);
    if (failed != 0) {
        kernel::call(SYS_unlink, kernel::address(path));
        return -failed;
    }
    *base = reinterpret_cast<uint8_t*>(mapped);
    return 0;
}

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

// Readers see it grow, whoever of two that went on at the same time comes last.
void publish_current(uint32_t sequence) {
    uint32_t* place = &g.control->current_segment;
    uint32_t seen = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (seen < sequence && !__atomic_compare_exchange_n(place, &seen, sequence, true,
                                                           __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

int prepare(uint32_t sequence) {
    const Path path = segment_path(sequence);
    uint8_t* base = nullptr;
    if (const long error = create_mapped(path.text, g.segment_size, &base); error != 0)
        return static_cast<int>(error);
    auto* header = reinterpret_cast<SegmentHeader*>(base);
    memcpy(header->magic, "TACHSEG1", 8);
    header->sequence = sequence;
    header->size = static_cast<uint32_t>(g.segment_size);
    header->pid = g.control->pid;
    header->start_ns = g.control->start_ns;

    Segment& segment = slot(sequence);
    segment.sequence = sequence;
    segment.used.store(kSegmentHeader, std::memory_order_relaxed);
    segment.base.store(base, std::memory_order_release);
    g.prepared.store(sequence, std::memory_order_release);
    return 0;
}

}  // namespace

Control* control() { return g.control; }

BlockRecord* young() {
    if (!g.control || g.control_size == kControlSize) return nullptr;
    return reinterpret_cast<BlockRecord*>(reinterpret_cast<uint8_t*>(g.control) + kControlSize);
}

uint64_t mapped_bytes() {
    uint64_t bytes = g.control_size;
    for (const Segment& segment : g.segments)
        if (segment.base.load(std::memory_order_acquire)) bytes += g.segment_size;
    return bytes;
}

void count(Loss loss, uint64_t n) {
    if (g.control)
        __atomic_fetch_add(&g.control->losses[static_cast<uint32_t>(loss)], n, __ATOMIC_RELAXED);
}

int open(const char* directory, uint64_t segment_size, int64_t start_ns, bool memory) {
    g.control_size = kControlSize + (memory ? kYoungSize : 0);
    g.segment_size = (segment_size + 4095) & ~uint64_t{4095};
    const pid_t pid = kernel::getpid();
    const int length = snprintf(g.prefix, sizeof g.prefix, "%s/%d-%lld", directory, pid,
                                static_cast<long long>(start_ns));
    if (length < 0 || static_cast<size_t>(length) >= sizeof g.prefix) return ENAMETOOLONG;

    char path[sizeof g.prefix + 16];
    snprintf(path, sizeof path, "%s.ctl", g.prefix);
    uint8_t* base = nullptr;
    if (const long error = create_mapped(path, g.control_size, &base); error != 0)
        return static_cast<int>(error);
    auto* made = reinterpret_cast<Control*>(base);
    made->major = 1;
    made->pid = pid;
    made->parent_pid = static_cast<int32_t>(kernel::call(SYS_getppid));
    made->start_ns = start_ns;
    made->start_utc_ns = kernel::clock_ns(CLOCK_REALTIME) - (kernel::monotonic_ns() - start_ns);
    made->segment_size = g.segment_size;
    made->state = static_cast<uint32_t>(ControlState::recording);
    g.control = made;
    for (uint32_t sequence = 0; sequence < 2; ++sequence)
        if (const int error = prepare(sequence); error != 0) {
            // As if nothing had been: the one before it goes, and the control file.
            if (sequence > 0) {
                const Path made_before = segment_path(0);
                kernel::call(SYS_unlink, kernel::address(made_before.text));
            }
            kernel::call(SYS_unlink, kernel::address(path));
            return error;
        }
    // The magic goes in last: a control file without it is not one.
    memcpy(made->magic, "TACHCTL1", 8);
    return 0;
}

Control* leave() {
    for (Segment& segment : g.segments) {
        uint8_t* base = segment.base.exchange(nullptr);
        if (base)
            kernel::call(SYS_munmap, kernel::address(base), static_cast<long>(g.segment_size));
        segment.used.store(0, std::memory_order_relaxed);
    }
    Control* parents = g.control;
    g.control = nullptr;
    g.current.store(0);
    g.prepared.store(0);
    g.unmapped = 0;
    g.writers.store(0);  // those of the parent's threads that were in the middle of a record
    return parents;
}

void unmap(Control* parents) {
    kernel::call(SYS_munmap, kernel::address(parents), static_cast<long>(g.control_size));
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
        if (segment.used.load(std::memory_order_relaxed) + length <= g.segment_size) {
            const uint64_t offset = segment.used.fetch_add(length, std::memory_order_relaxed);
            if (offset + length <= g.segment_size)
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

int maintain() {
    const uint32_t current = g.current.load(std::memory_order_seq_cst);
    // Retired segments first: their places in the ring are needed again.
    while (g.unmapped < current && g.writers.load(std::memory_order_seq_cst) == 0) {
        Segment& segment = slot(g.unmapped);
        uint8_t* base = segment.base.exchange(nullptr);
        if (base)
            kernel::call(SYS_munmap, kernel::address(base), static_cast<long>(g.segment_size));
        ++g.unmapped;
    }
    const uint32_t prepared = g.prepared.load(std::memory_order_acquire);
    const bool wanted = prepared == current ||
                        (prepared == current + 1 &&
                         slot(current).used.load(std::memory_order_relaxed) > g.segment_size / 2);
    if (!wanted || prepared + 1 - g.unmapped >= kSegments) return 0;
    return prepare(prepared + 1);
}

bool can_turn() {
    const uint32_t current = g.current.load(std::memory_order_relaxed);
    return current < __atomic_load_n(&g.control->segment_requested, __ATOMIC_ACQUIRE) &&
           current < g.prepared.load(std::memory_order_acquire);
}

void turn() {
    uint32_t current = g.current.load(std::memory_order_seq_cst);
    if (!can_turn()) return;
    // Somebody may have filled it at this moment and gone on himself.
    if (g.current.compare_exchange_strong(current, current + 1, std::memory_order_seq_cst))
        publish_current(current + 1);
}

}  // namespace tachograph::spool
