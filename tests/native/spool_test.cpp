// The spool under concurrent writers. The segments are read back by test_segments.py: each test
// prints what it committed as lines "thread committed dropped", and of each of its records the
// number counts up from 0 per thread.
#include "spool/spool.h"
#include "base/kernel.h"
#include "check.h"
#include "spool/layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace tachograph;

namespace {

constexpr uint64_t kSegmentSize = 128 << 10;
constexpr uint64_t kFirstSegmentSize = 64 << 10;
constexpr auto kTestKind = static_cast<Kind>(200);

struct TestRecord {
    uint64_t header;
    uint32_t thread;
    uint32_t number;
};

struct Tally {
    uint32_t committed = 0;
    uint32_t dropped = 0;
};

// Lengths from nothing to an eighth of a segment; the filling tells a reader where it belongs.
size_t filling(uint32_t thread, uint32_t number) {
    const uint32_t draw = (number * 2654435761u ^ thread * 40503u) >> 8;
    return draw % 256 == 0 ? kSegmentSize / 8 : draw % 97;
}

bool append(uint32_t thread, Tally* tally) {
    const size_t more = filling(thread, tally->committed);
    const spool::Ticket ticket = spool::reserve(kTestKind, sizeof(TestRecord) + more);
    if (!ticket.record) {
        ++tally->dropped;
        return false;
    }
    auto* record = reinterpret_cast<TestRecord*>(ticket.record);
    CHECK(record->header == 0 && record->thread == 0 && record->number == 0);
    record->thread = thread;
    record->number = tally->committed;
    memset(record + 1, static_cast<int>(thread + tally->committed) & 0xFF, more);
    spool::commit(ticket);
    ++tally->committed;
    return true;
}

void print(uint32_t thread, const Tally& tally) {
    printf("%u %u %u\n", thread, tally.committed, tally.dropped);
}

uint64_t dropped() {
    return spool::control()->losses[static_cast<uint32_t>(Loss::records_dropped)];
}

// So many threads that append at the same time; what each of them did.
std::vector<Tally> write_from(uint32_t threads) {
    constexpr uint32_t kAppends = 2'500;
    std::vector<Tally> tallies(threads);
    std::vector<std::thread> writers;
    for (uint32_t thread = 0; thread < threads; ++thread)
        writers.emplace_back([thread, &tallies] {
            Tally tally;
            while (tally.committed < kAppends)
                if (!append(thread, &tally)) usleep(50);
            tallies[thread] = tally;
        });
    for (std::thread& writer : writers) writer.join();
    return tallies;
}

int files_in_folder() {
    DIR* directory = opendir(tests::folder);
    CHECK(directory);
    int count = 0;
    while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

void limit_file_size(uint64_t bytes) {
    rlimit limit{};
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

}  // namespace

TEST(spool_concurrent_appends) {
    constexpr uint32_t kThreads = 8;
    CHECK(spool::open(tests::folder, kSegmentSize, 1) == 0);
    std::atomic<bool> done{false};
    std::thread helper([&] {
        while (!done.load()) CHECK(spool::maintain() == 0);
    });
    const std::vector<Tally> tallies = write_from(kThreads);
    done.store(true);
    helper.join();
    uint64_t lost = 0;
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
        print(thread, tallies[thread]);
        lost += tallies[thread].dropped;
    }
    CHECK(dropped() == lost);
    CHECK(spool::control()->current_segment >= 15);
}

TEST(spool_begins_with_little) {
    CHECK(spool::open(tests::folder, kSegmentSize, kernel::monotonic_ns()) == 0);
    CHECK(spool::mapped_bytes() == kControlSize + kFirstSegmentSize && files_in_folder() == 2);
    // Either there is much to write, or the process stays.
    Tally tally;
    while (spool::in_first_moment()) {
        CHECK(append(0, &tally));
        CHECK(spool::maintain() == 0);
    }
    CHECK(spool::maintain() == 0 && files_in_folder() == 3);
    CHECK(spool::mapped_bytes() == kControlSize + kFirstSegmentSize + kSegmentSize);
    while (spool::is_current(0)) append(0, &tally);
    CHECK(tally.dropped == 0);
    print(0, tally);
}

TEST(spool_that_nobody_maintains) {
    CHECK(spool::open(tests::folder, kSegmentSize, kernel::monotonic_ns()) == 0);
    CHECK(spool::prepare_second() == 0 && spool::prepare_second() == 0);
    CHECK(files_in_folder() == 3 && !spool::in_first_moment());
    Tally tally;
    while (append(0, &tally)) {
    }
    CHECK(spool::is_current(1));
    print(0, tally);
}

TEST(spool_at_the_end_has_room) {
    CHECK(spool::open(tests::folder, kSegmentSize, kernel::monotonic_ns()) == 0);
    Tally tally;
    while (append(0, &tally)) {
    }
    CHECK(dropped() == 1 && files_in_folder() == 2);
    spool::begin_end();
    for (int i = 0; i < 4000; ++i) CHECK(append(0, &tally));
    CHECK(spool::control()->current_segment > 1);
    std::thread([&] {  // another one makes none
        Tally others;
        while (append(1, &others)) {
        }
    })
        .join();
    print(0, tally);
}

TEST(spool_leaves_a_segment_when_asked) {
    CHECK(spool::open(tests::folder, kSegmentSize, 1) == 0);
    CHECK(spool::maintain() == 0);
    Tally tally;
    CHECK(append(0, &tally));
    spool::start_next_segment();
    CHECK(spool::is_current(0));  // there was no request
    spool::control()->segment_requested = 1;
    CHECK(spool::may_start_next_segment());
    spool::start_next_segment();
    CHECK(spool::is_current(1) && spool::control()->current_segment == 1 &&
          !spool::may_start_next_segment());
    CHECK(append(0, &tally));
    // Not before the next one is ready, and one after the other.
    spool::control()->segment_requested = 3;
    CHECK(!spool::may_start_next_segment());
    spool::start_next_segment();
    CHECK(spool::is_current(1));
    for (uint32_t sequence = 2; sequence <= 3; ++sequence) {
        CHECK(spool::maintain() == 0 && spool::may_start_next_segment());
        spool::start_next_segment();
        CHECK(spool::is_current(sequence) && append(0, &tally));
    }
    CHECK(spool::maintain() == 0 && !spool::may_start_next_segment());
    print(0, tally);
}

TEST(spool_leaves_segments_beside_writers) {
    constexpr uint32_t kThreads = 4;
    CHECK(spool::open(tests::folder, kSegmentSize, 1) == 0);
    std::atomic<bool> done{false};
    std::thread helper([&] {
        for (uint32_t i = 0; !done.load(); ++i) {
            CHECK(spool::maintain() == 0);
            if (i % 4 == 0 && i < 400) {
                Control* control = spool::control();
                const uint32_t seen = __atomic_load_n(&control->current_segment, __ATOMIC_ACQUIRE);
                __atomic_store_n(&control->segment_requested, seen + 1, __ATOMIC_RELEASE);
            }
            spool::start_next_segment();
            usleep(100);
        }
    });
    const std::vector<Tally> tallies = write_from(kThreads);
    done.store(true);
    helper.join();
    for (uint32_t thread = 0; thread < kThreads; ++thread) print(thread, tallies[thread]);
}

TEST(spool_without_its_helper) {
    CHECK(spool::open(tests::folder, kSegmentSize, 1) == 0);
    CHECK(spool::maintain() == 0);
    Tally tally;
    while (append(0, &tally) || tally.dropped < 1000) {
    }
    CHECK(dropped() == tally.dropped);
    CHECK(spool::is_current(1) && !spool::is_current(0));
    // A helper that comes back finds everything as it was left.
    for (int i = 0; i < 4; ++i) CHECK(spool::maintain() == 0);
    CHECK(append(0, &tally) && spool::is_current(2));
    print(0, tally);
}

TEST(spool_record_too_large) {
    CHECK(spool::open(tests::folder, kSegmentSize, 1) == 0);
    Tally tally;
    CHECK(!spool::reserve(kTestKind, kSegmentSize - kSegmentHeader + 1).record);
    CHECK(!spool::reserve(kTestKind, size_t{1} << 40).record);
    CHECK(dropped() == 2 && spool::is_current(0));
    CHECK(append(0, &tally));
    print(0, tally);
}

TEST(spool_refused_at_open) {
    char path[600];
    snprintf(path, sizeof path, "%s/missing", tests::folder);
    CHECK(spool::open(path, kSegmentSize, 1) == ENOENT);
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    CHECK(spool::open(path, kSegmentSize, 2) == ENAMETOOLONG);
    // Room for the control file, none for a segment: nothing stays behind.
    limit_file_size(kControlSize);
    CHECK(spool::open(tests::folder, kSegmentSize, 3) == EFBIG);
    CHECK(files_in_folder() == 0);
    // And it can be tried again.
    limit_file_size(RLIM_INFINITY);
    CHECK(spool::open(tests::folder, kSegmentSize, 4) == 0);
    CHECK(files_in_folder() == 2);
    Tally tally;
    CHECK(append(0, &tally));
    print(0, tally);
}

TEST(spool_disk_full) {
    CHECK(spool::open(tests::folder, kSegmentSize, 1) == 0);
    limit_file_size(kSegmentSize / 2);
    Tally tally;
    int error = 0;
    while (tally.dropped < 100) {
        append(0, &tally);
        if (error == 0) error = spool::maintain();
    }
    CHECK(error == EFBIG);
    CHECK(files_in_folder() == 2);  // the segment that was refused is gone again
    CHECK(dropped() == tally.dropped);
    print(0, tally);
}

// Run by test_segments.py with a small file system of its own at the folder.
TEST(spool_no_space_left) {
    CHECK(spool::open(tests::folder, kSegmentSize, 1) == 0);
    Tally tally;
    while (tally.dropped < 100) {
        append(0, &tally);
        CHECK(spool::maintain() == 0);
    }
    CHECK(dropped() == tally.dropped);
    print(0, tally);
}

// A handler appends while the same thread is in the middle of an append.
TEST(spool_appends_in_handlers) {
    static Tally handlers;
    static std::atomic<bool> on{true};
    CHECK(spool::open(tests::folder, kSegmentSize, 1) == 0);
    struct sigaction action{};
    action.sa_handler = [](int) {
        const int saved = errno;
        if (on.load()) append(1, &handlers);
        errno = saved;
    };
    CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
    const itimerval often{{0, 100}, {0, 100}};
    CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
    Tally tally;
    for (int i = 0; i < 60'000; ++i) {
        append(0, &tally);
        if (i % 16 == 0) CHECK(spool::maintain() == 0);
    }
    on.store(false);
    print(0, tally);
    print(1, handlers);
    CHECK(dropped() == tally.dropped + handlers.dropped);
}

// Appends until it is killed. What was committed, per thread, stands in FOLDER/progress.
TEST(spool_appends_until_killed) {
    constexpr uint32_t kThreads = 4;
    char path[600];
    snprintf(path, sizeof path, "%s/progress", tests::folder);
    const int fd = ::open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && ftruncate(fd, kThreads * sizeof(uint64_t)) == 0);
    void* mapped =
        mmap(nullptr, kThreads * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(mapped != MAP_FAILED);
    auto* progress = static_cast<uint64_t*>(mapped);
    CHECK(spool::open(tests::folder, kSegmentSize, 1) == 0);
    std::vector<std::thread> writers;
    for (uint32_t thread = 0; thread < kThreads; ++thread)
        writers.emplace_back([thread, progress] {
            Tally tally;
            for (;;) {
                if (append(thread, &tally))
                    __atomic_store_n(&progress[thread], tally.committed, __ATOMIC_RELEASE);
                else
                    usleep(100);
            }
        });
    while (spool::maintain() == 0) usleep(50);  // never ends by itself
}

TEST(spool_numbers_of_segments_have_as_many_digits_as_they_need) {
    const auto text = [](uint32_t sequence) {
        char digits[11] = {};
        return std::string(digits, spool::write_number(digits, sequence));
    };
    CHECK(text(0) == "000000" && text(4711) == "004711" && text(999'999) == "999999");
    CHECK(text(1'000'000) == "1000000" && text(12'345'678) == "12345678");
    CHECK(text(4'294'967'295) == "4294967295");
}
