#include "spool/spool.h"

#include "base/bounded_lock.h"
#include "base/kernel.h"
#include "base/kernel_text.h"
#include "base/mapped_file.h"
#include "spool/fd_broker.h"
#include "spool/memory_file.h"
#include "spool/record.h"
#include "spool/settings.h"
#include "spool/spool_folder.h"

#include <fcntl.h>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace tachograph::spool {
namespace {

struct Segment {
    std::atomic<uint8_t*> base{nullptr};
    std::atomic<uint64_t> used{0};
    uint64_t size = 0;
    bool in_memory = false;
    // Helper only, once the recording command is gone: how far the segment was copied at the last
    // two copies. Each copy begins at `copied_before`: records that were reserved before that one
    // are committed by now.
    uint64_t copied = 0;
    uint64_t copied_before = 0;
};

// A ring of segments: the current one, the next one, and those that wait to be unmapped. Of files
// there are never more than three; of memory files, as many as the recording command has not copied
// yet, up to this bound.
constexpr uint32_t kSegments = 16;

// The first segment is small, because the blocks of a file are allocated in advance, and a
// recording may have thousands of processes that end at once. The second one is made later.
constexpr uint64_t kFirstSegmentSize = 64 << 10;

// The time-out for the recording command: to answer a request for a segment, or to take over the
// first memory files. Requests are repeated once per kAskAgainNs. A full disk is tried again as
// often, without a time-out.
constexpr int64_t kPatienceNs = 60'000'000'000;
constexpr int64_t kAskAgainNs = 1'000'000'000;

// The recording command copies memory files several times a second and writes when it did. After
// kStaleNs without a copy, the helper checks once per kLookAgainNs whether the command still runs.
// If not, the helper makes the copies itself, once per kCopyPeriodNs.
constexpr int64_t kStaleNs = 1'000'000'000;
constexpr int64_t kLookAgainNs = 1'000'000'000;
constexpr int64_t kCopyPeriodNs = 400'000'000;
// The time-out for threads that are writing a record.
constexpr int64_t kWritersNs = 200'000'000;
// At the end of a process, a copy that is younger than this needs no check of the command.
constexpr int64_t kFreshNs = 100'000'000;

struct State {
    Segment segments[kSegments];
    std::atomic<uint32_t> current{0};   // sequence number
    std::atomic<uint32_t> prepared{0};  // highest sequence number that is mapped
    uint32_t unmapped = 0;              // sequence numbers below are unmapped (helper only)
    std::atomic<int64_t> writers{0};
    Control* control = nullptr;
    size_t control_size = 0;   // with what lies behind it
    uint8_t* place = nullptr;  // its fixed address, in a process with several recordings
    uint64_t segment_size = 0;
    int64_t unanswered_ns = 0;  // helper only: time of the first request without an answer
    int64_t asked_ns = 0;       // helper only: time of the last one, or of the last full disk
    bool in_memory = false;     // the control file is; segments say it themselves
    bool at_once = false;       // memory files are filled when they are made
    bool alone = false;         // helper only: the recording command is gone
    int64_t looked_ns = 0;      // helper only: time of the last check of the recording command
    int64_t saved_ns = 0;       // helper only: time of the helper's last copy
    // Held while copies are made: by the helper, which never waits for it, or by a thread that
    // calls exec or ends the process.
    std::atomic_flag saving = ATOMIC_FLAG_INIT;
    std::atomic<int> ending{0};  // the thread that ends the recording; 0 before
    // Held while a segment is made: by the helper, or by that thread, which may be in a signal
    // handler and waits for none.
    std::atomic_flag preparing = ATOMIC_FLAG_INIT;
    char prefix[512] = {};
};
constinit State g;

uint64_t size_of(uint32_t sequence) {
    return sequence == 0 && g.segment_size > kFirstSegmentSize ? kFirstSegmentSize : g.segment_size;
}

Segment& slot(uint32_t sequence) { return g.segments[sequence % kSegments]; }

struct Path {
    char text[sizeof State::prefix + 16];
};

Path segment_path(uint32_t sequence) {
    Path path;
    const size_t length = strlen(g.prefix);
    memcpy(path.text, g.prefix, length);
    path.text[length] = '.';
    const size_t digits = write_number(path.text + length + 1, sequence);
    memcpy(path.text + length + 1 + digits, ".seg", 5);
    return path;
}

// An atomic maximum: of two threads that go on to the next segment, the later store may be of the
// lower number.
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

void write_header(const Control& control, uint32_t sequence, uint8_t* base) {
    auto* header = reinterpret_cast<SegmentHeader*>(base);
    memcpy(header->magic, kSegmentMagic, sizeof header->magic);
    header->sequence = sequence;
    header->size = static_cast<uint32_t>(size_of(sequence));
    header->pid = control.pid;
    header->start_ns = control.start_ns;
}

void use(uint32_t sequence, uint8_t* base, bool in_memory) {
    Segment& segment = slot(sequence);
    segment.size = size_of(sequence);
    segment.in_memory = in_memory;
    segment.copied = segment.copied_before = 0;
    segment.used.store(kSegmentHeader, std::memory_order_relaxed);
    segment.base.store(base, std::memory_order_release);
    g.prepared.store(sequence, std::memory_order_release);
}

// A segment in memory that the recording command holds; false if that is not possible.
bool hold(uint32_t sequence, uint8_t** base) {
    const uint64_t size = size_of(sequence);
    int fd = -1;
    if (memory_file::create(size, g.at_once, base, &fd) != 0) return false;
    write_header(*g.control, sequence, *base);
    const long failed = fd_broker::hold_segment(g.control->start_ns, sequence, size, fd);
    kernel::call(SYS_close, fd);
    if (failed != 0) mapped_file::unmap(*base, size);
    return failed == 0;
}

// A new file of the spool, mapped. 0 or an errno; then there is none.
long make_file(const Path& path, uint64_t size, uint8_t** base) {
    const long fd = spool_folder::open(path.text, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0) return -fd;
    const long failed = mapped_file::fill(fd, size, base);
    if (failed != 0) spool_folder::remove(path.text);
    return failed;
}

int prepare(uint32_t sequence) {
    uint8_t* base = nullptr;
    if (g.in_memory && hold(sequence, &base)) {
        use(sequence, base, true);
        return 0;
    }
    const Path path = segment_path(sequence);
    const uint64_t size = size_of(sequence);
    long error = make_file(path, size, &base);
    if (fd_broker::may_help(error))
        error = fd_broker::segment(error, g.control->start_ns, sequence, size, &base);
    if (error != 0) return static_cast<int>(error);
    write_header(*g.control, sequence, base);
    use(sequence, base, false);
    return 0;
}

// The same, once. EBUSY: another thread is at it.
int prepare_once(uint32_t sequence) {
    if (g.preparing.test_and_set(std::memory_order_acquire)) return EBUSY;
    const bool is_there = g.prepared.load(std::memory_order_acquire) >= sequence;
    const int error = is_there ? 0 : prepare(sequence);
    g.preparing.clear(std::memory_order_release);
    return error;
}

// The control file and the first segment, both or none.
long make_first(uint8_t* (&bases)[2]) {
    const Path control = control_path();
    long error = make_file(control, g.control_size, &bases[0]);
    if (error != 0) return error;
    error = make_file(segment_path(0), size_of(0), &bases[1]);
    if (error != 0) {
        mapped_file::unmap(bases[0], g.control_size);
        spool_folder::remove(control.text);
    }
    return error;
}

void describe(Control* made, pid_t pid, int64_t start_ns) {
    made->major = 1;
    made->pid = pid;
    made->parent_pid = static_cast<int32_t>(kernel::call(SYS_getppid));
    made->start_ns = start_ns;
    made->start_utc_ns = kernel::clock_ns(CLOCK_REALTIME) - (kernel::monotonic_ns() - start_ns);
    made->segment_size = g.segment_size;
    made->state = static_cast<uint32_t>(ControlState::recording);
}

// The control file and the first segment as memory files that the recording command holds; false if
// that is not possible.
bool hold_first(pid_t pid, int64_t start_ns, uint8_t* (&bases)[2]) {
    const tg_options& options = settings::options();
    if (options.fd_broker.length == 0) return false;
    g.at_once = options.memory_at_once != 0;
    const fd_broker::Sizes sizes = {g.control_size, size_of(0)};
    int fds[2];
    if (memory_file::create(sizes.control, g.at_once, &bases[0], &fds[0]) != 0) return false;
    long failed = memory_file::create(sizes.segment, g.at_once, &bases[1], &fds[1]);
    if (failed == 0) {
        auto* made = reinterpret_cast<Control*>(bases[0]);
        describe(made, pid, start_ns);
        made->copied_ns = start_ns;
        memcpy(made->magic, kControlMagic, sizeof made->magic);
        write_header(*made, 0, bases[1]);
        failed = fd_broker::hold_process(start_ns, sizes, fds);
        kernel::call(SYS_close, fds[1]);
        if (failed != 0) mapped_file::unmap(bases[1], sizes.segment);
    }
    kernel::call(SYS_close, fds[0]);
    if (failed != 0) mapped_file::unmap(bases[0], sizes.control);
    return failed == 0;
}

// A full disk does not end the recording: the segments in memory are bounded, and records that find
// no room are counted.
bool is_full(long error) { return error == ENOSPC || error == EDQUOT; }

// When the recording command ends the recording, it has listed the spool's files and will remove
// them: no file may be made any more.
bool may_make() { return __atomic_load_n(&g.control->stop_requested, __ATOMIC_ACQUIRE) == 0; }

// Copies what is new in a segment in memory, or all of it, into its file. 0 or an errno.
long save_segment(uint32_t sequence, bool all) {
    Segment& segment = slot(sequence);
    const uint8_t* base = segment.base.load(std::memory_order_acquire);
    if (!base || !segment.in_memory) return 0;
    uint64_t used = segment.used.load(std::memory_order_acquire);
    if (used > segment.size) used = segment.size;
    const uint64_t begin = all ? 0 : segment.copied_before;
    const long failed = memory_file::copy(segment_path(sequence).text, base + begin, used - begin,
                                          begin, may_make());
    if (failed == 0) {
        segment.copied_before = segment.copied;
        segment.copied = used;
    }
    return failed;
}

// The fields of the control file that other processes write. Without the recording command, they
// write into the copy on the disk.
constexpr uint64_t kRequestsBegin = offsetof(Control, stop_requested);
constexpr uint64_t kRequestsEnd = kRequestsBegin + 2 * sizeof(uint32_t);
static_assert(offsetof(Control, segment_requested) == kRequestsBegin + sizeof(uint32_t));

void take_requests() {
    uint32_t asked[2] = {};
    const long fd = spool_folder::open(control_path().text, O_RDONLY);
    if (fd < 0) return;
    if (kernel::call(SYS_pread64, fd, kernel::address(asked), sizeof asked,
                     static_cast<long>(kRequestsBegin)) == static_cast<long>(sizeof asked) &&
        asked[0] != 0)
        __atomic_store_n(&g.control->stop_requested, 1u, __ATOMIC_RELEASE);
    kernel::call(SYS_close, fd);
}

// The control file is read first and written last, so that what it says of segments is true of
// their copies. Pending blocks are read after the segments: a block that gets its row in between is
// in neither copy, but never in both. `last`: nothing is written afterwards, and the copies are
// complete.
long save_all(bool last) {
    Control head = *g.control;
    head.copied_ns = last ? 0 : kernel::monotonic_ns();
    const uint32_t current = g.current.load(std::memory_order_seq_cst);
    for (uint32_t sequence = g.unmapped; sequence <= current; ++sequence)
        if (const long failed = save_segment(sequence, last); failed != 0) return failed;
    const Path path = control_path();
    const auto* base = reinterpret_cast<const uint8_t*>(&head);
    const auto* all = reinterpret_cast<const uint8_t*>(g.control);
    const bool make = may_make();
    long failed = memory_file::copy(path.text, all + sizeof head, g.control_size - sizeof head,
                                    sizeof head, make);
    if (failed == 0) failed = memory_file::copy(path.text, base, kRequestsBegin, 0, make);
    if (failed == 0)
        failed = memory_file::copy(path.text, base + kRequestsEnd, sizeof head - kRequestsEnd,
                                   kRequestsEnd, make);
    return failed;
}

int64_t copied_ago(int64_t now) {
    return now - __atomic_load_n(&g.control->copied_ns, __ATOMIC_ACQUIRE);
}

// Makes the copies if the recording command is gone. 0, or the errno that ends the recording: the
// spool was removed.
int watch_copies() {
    const int64_t now = kernel::monotonic_ns();
    if (copied_ago(now) < kStaleNs) {
        g.alone = false;
        return 0;
    }
    if (!g.alone && now - g.looked_ns > kLookAgainNs) {
        g.looked_ns = now;
        const bool never_held = g.control->copied_ns == g.control->start_ns;
        g.alone = fd_broker::is_gone() || (never_held && now - g.control->start_ns > kPatienceNs);
    }
    if (!g.alone) return 0;
    take_requests();
    if (now - g.saved_ns < kCopyPeriodNs) return 0;
    const BoundedLock saving(g.saving, 1);
    if (!saving) return 0;
    g.saved_ns = now;
    const long failed = save_all(false);
    return is_full(failed) ? 0 : static_cast<int>(failed);
}

// All recordings of one process have their control files at one address: a thread that still
// counts something when a recording ends finds mapped memory there.
bool move_to_place(uint8_t** base) {
    if (!g.place && !kernel::map(&g.place, kControlSize + kPendingSize)) return false;
    constexpr long kMoves = 3;  // MREMAP_MAYMOVE | MREMAP_FIXED
    const auto size = static_cast<long>(g.control_size);
    const long moved = kernel::call(SYS_mremap, kernel::address(*base), size, size, kMoves,
                                    kernel::address(g.place));
    if (moved != kernel::address(g.place)) return false;
    *base = g.place;
    return true;
}

// Whether a segment without writers can be unmapped: it is a file, or it was copied.
bool is_safe(uint32_t sequence) {
    if (!slot(sequence).in_memory) return true;
    if (sequence < __atomic_load_n(&g.control->segments_copied, __ATOMIC_ACQUIRE)) return true;
    const BoundedLock saving(g.saving, 1);
    return g.alone && saving && save_segment(sequence, true) == 0;
}

// The recording command may be stopped or busy. Until it answers, the segments that were made
// before are filled; then records are dropped and counted.
int wait_for_answer() {
    const int64_t now = g.asked_ns = kernel::monotonic_ns();
    if (g.unanswered_ns == 0) g.unanswered_ns = now;
    return now - g.unanswered_ns < kPatienceNs ? 0 : EACCES;
}

// Resets all state except mappings.
void begin_anew() {
    for (Segment& segment : g.segments) {
        segment.used.store(0, std::memory_order_relaxed);
        segment.in_memory = false;
    }
    g.current.store(0);
    g.prepared.store(0);
    g.unmapped = 0;
    g.unanswered_ns = g.asked_ns = 0;
    g.in_memory = g.alone = false;
    g.looked_ns = g.saved_ns = 0;
    g.saving.clear();
    g.ending.store(0);
    g.preparing.clear();
}

// At the end, the thread that ends the recording makes the segments: what all functions and blocks
// add up to may be more than a process that lived for a moment has room for.
bool prepare_at_end(uint32_t sequence) {
    if (g.ending.load(std::memory_order_acquire) != kernel::gettid()) return false;
    return sequence + 1 - g.unmapped < kSegments && prepare_once(sequence + 1) == 0;
}

}  // namespace

size_t write_number(char* at, uint32_t sequence) {
    return static_cast<size_t>(write_decimal(at, sequence, 6) - at);
}

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

bool is_mapped(uintptr_t begin) {
    if (reinterpret_cast<uintptr_t>(g.control) == begin) return true;
    for (const Segment& segment : g.segments)
        if (reinterpret_cast<uintptr_t>(segment.base.load(std::memory_order_acquire)) == begin)
            return true;
    return false;
}

void count(Loss loss, uint64_t n) {
    if (g.control)
        __atomic_fetch_add(&g.control->losses[static_cast<uint32_t>(loss)], n, __ATOMIC_RELAXED);
}

int open(const char* directory, uint64_t segment_size, int64_t start_ns, bool memory) {
    g.control_size = kControlSize + (memory ? kPendingSize : 0);
    g.segment_size = (segment_size + 4095) & ~uint64_t{4095};
    const pid_t pid = kernel::getpid();
    constexpr size_t kNumbers = 32;  // "/PID-START" and a zero
    const size_t length = strlen(directory);
    if (length > sizeof g.prefix - kNumbers) return ENAMETOOLONG;
    memcpy(g.prefix, directory, length);
    char* at = g.prefix + length;
    *at++ = '/';
    at = write_decimal(at, static_cast<uint64_t>(pid));
    *at++ = '-';
    *write_decimal(at, static_cast<uint64_t>(start_ns)) = 0;

    uint8_t* bases[2] = {};
    g.in_memory = hold_first(pid, start_ns, bases);
    if (!g.in_memory) {
        long error = make_first(bases);
        if (fd_broker::may_help(error))
            error = fd_broker::process(error, start_ns, {g.control_size, size_of(0)}, bases);
        if (error != 0) return static_cast<int>(error);
    }
    if (settings::are_from_inside() && !move_to_place(&bases[0])) {
        mapped_file::unmap(bases[0], g.control_size);
        mapped_file::unmap(bases[1], size_of(0));
        return ENOMEM;
    }
    auto* made = reinterpret_cast<Control*>(bases[0]);
    if (!g.in_memory) {
        describe(made, pid, start_ns);
        write_header(*made, 0, bases[1]);
    }
    g.control = made;
    use(0, bases[1], g.in_memory);
    // The magic goes in last: a control file without it is not one.
    memcpy(made->magic, kControlMagic, sizeof made->magic);
    return 0;
}

Control* unmap_segments_of_parent() {
    for (Segment& segment : g.segments) {
        uint8_t* base = segment.base.exchange(nullptr);
        if (base) mapped_file::unmap(base, segment.size);
    }
    Control* parents = g.control;
    g.control = nullptr;
    g.place = nullptr;
    g.writers.store(0);  // those were threads of the parent
    begin_anew();
    return parents;
}

bool unmap_all() {
    uint8_t* bases[kSegments];
    for (uint32_t i = 0; i < kSegments; ++i) bases[i] = g.segments[i].base.exchange(nullptr);
    const int64_t limit = kernel::monotonic_ns() + kWritersNs;
    while (g.writers.load(std::memory_order_seq_cst) != 0) {
        if (kernel::monotonic_ns() > limit) return false;
        kernel::call(SYS_sched_yield);
    }
    for (uint32_t i = 0; i < kSegments; ++i)
        if (bases[i]) mapped_file::unmap(bases[i], g.segments[i].size);
    // Mapped anew rather than cleared: clearing would write into the memory file.
    if (g.place) kernel::map_zeros(kernel::address(g.place), kControlSize + kPendingSize);
    begin_anew();
    return true;
}

void unmap_control_of_parent(Control* parents) {
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
        // Checked before the addition, so that the counter of a full segment cannot overflow.
        if (segment.used.load(std::memory_order_relaxed) + length <= segment.size) {
            const uint64_t offset = segment.used.fetch_add(length, std::memory_order_relaxed);
            if (offset + length <= segment.size)
                return {base + offset,
                        record_header(kind, static_cast<uint32_t>(length), offset, sequence),
                        sequence};
        }
        if (g.prepared.load(std::memory_order_acquire) == sequence && !prepare_at_end(sequence))
            break;
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

bool is_half_full() {
    const uint32_t current = g.current.load(std::memory_order_acquire);
    const Segment& segment = slot(current);
    return g.prepared.load(std::memory_order_acquire) == current &&
           segment.used.load(std::memory_order_relaxed) > segment.size / 2;
}

int maintain() {
    const uint32_t current = g.current.load(std::memory_order_seq_cst);
    if (g.in_memory)
        if (const int error = watch_copies(); error != 0) return error;
    // First unmap segments without writers: their places in the ring are needed again.
    const bool quiet = g.writers.load(std::memory_order_seq_cst) == 0;
    if (quiet && g.in_memory)
        __atomic_store_n(&g.control->segments_quiet, current, __ATOMIC_RELEASE);
    while (g.unmapped < current && quiet && is_safe(g.unmapped)) {
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
    const int error = prepare_once(prepared + 1);
    if (error == EBUSY) return 0;
    if (error == EAGAIN) return wait_for_answer();
    g.unanswered_ns = 0;
    g.asked_ns = is_full(error) ? kernel::monotonic_ns() : 0;
    if (is_full(error)) return 0;
    return half ? error : 0;  // not before the current segment is half full
}

void save(bool last) {
    if (!g.in_memory || copied_ago(kernel::monotonic_ns()) < kFreshNs || !fd_broker::is_gone())
        return;
    // The helper may hold the lock while it waits for the disk.
    constexpr int kPatience = 10'000;
    if (const BoundedLock saving(g.saving, kPatience); saving) save_all(last);
}

void begin_end() { g.ending.store(kernel::gettid(), std::memory_order_release); }

int prepare_second() { return prepare_once(1); }

bool may_start_next_segment() {
    const uint32_t current = g.current.load(std::memory_order_relaxed);
    return current < __atomic_load_n(&g.control->segment_requested, __ATOMIC_ACQUIRE) &&
           current < g.prepared.load(std::memory_order_acquire);
}

void start_next_segment() {
    uint32_t current = g.current.load(std::memory_order_seq_cst);
    if (!may_start_next_segment()) return;
    // Another thread may have filled it at this moment and gone on.
    if (g.current.compare_exchange_strong(current, current + 1, std::memory_order_seq_cst))
        publish_current(current + 1);
}

}  // namespace tachograph::spool
