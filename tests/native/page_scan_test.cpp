// The scan for pages in memory, by either way of asking the kernel; and which pools are known.
#include "memory/resident_pages.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "check.h"
#include "memory/known_pools.h"
#include "stacks/recorder.h"

#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace tachograph;

namespace {

constexpr uintptr_t kPage = 4096;
constexpr uintptr_t kReserved = uintptr_t{64} << 30;

using Pages = std::vector<uintptr_t>;

uintptr_t reserve(uintptr_t bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(at != MAP_FAILED);
    madvise(at, bytes, MADV_NOHUGEPAGE);
    return reinterpret_cast<uintptr_t>(at);
}

void touch(uintptr_t address) { *reinterpret_cast<volatile char*>(address) = 1; }

TimeLimit minutes() { return TimeLimit(300'000'000'000); }

Pages found(bool opens, uintptr_t begin, uintptr_t end) {
    PageScan scan(opens);
    Pages pages;
    for (uintptr_t at = begin; at < end;) {
        const PageScan::Run run = scan.next(at, end, minutes());
        CHECK(run.begin >= at && run.end <= end && !scan.late());
        for (uintptr_t page = run.begin; page < run.end; page += kPage) pages.push_back(page);
        at = run.end;
    }
    return pages;
}

}  // namespace

TEST(page_scan_larger_pages_are_as_many_pieces) {
    // Two pages of 16 KiB, from the last piece of the first on.
    uint8_t two[5] = {1, 0};
    pages::spread(two, 5, 12 * 1024, 16 * 1024);
    CHECK(two[0] == 1 && two[1] == 0 && two[4] == 0);
    // Of 64 KiB: a piece in the middle of one, and the next page.
    uint8_t many[24] = {0, 1};
    pages::spread(many, 24, 32 * 1024, 64 * 1024);
    for (size_t piece = 0; piece < 24; ++piece) CHECK(many[piece] == (piece < 8 ? 0 : 1));
}

TEST(page_scan_finds_the_few_pages_that_are_there) {
    const uintptr_t begin = reserve(kReserved);
    Pages touched;
    for (const uintptr_t offset : {uintptr_t{0}, kPage, 5 * kPage, uintptr_t{1} << 21,
                                   (uintptr_t{1} << 23) - kPage, uintptr_t{40} << 30})
        touched.push_back(begin + offset);
    // More runs than one answer has.
    for (uintptr_t i = 0; i < 1000; ++i)
        touched.push_back(begin + (uintptr_t{50} << 30) + 2 * i * kPage);
    touched.push_back(begin + kReserved - kPage);
    for (const uintptr_t page : touched) touch(page);
    CHECK(found(true, begin, begin + kReserved) == touched);
    // By mincore less is asked for, as it takes longer.
    const Pages low(touched.begin(), touched.begin() + 5);
    CHECK(found(false, begin, begin + (uintptr_t{1} << 30)) == low);
    CHECK(found(false, begin + (uintptr_t{50} << 30), begin + (uintptr_t{51} << 30)) ==
          Pages(touched.begin() + 6, touched.end() - 1));
    // Neither begins nor ends where it should not.
    CHECK(found(true, begin + kPage, begin + 5 * kPage) == Pages{begin + kPage});
    CHECK(found(false, begin + kPage, begin + 5 * kPage) == Pages{begin + kPage});
}

TEST(page_scan_goes_on_behind_what_is_not_mapped) {
    const uintptr_t begin = reserve(uintptr_t{64} << 20);
    const uintptr_t last = begin + (uintptr_t{64} << 20) - kPage;
    touch(begin);
    touch(last);
    munmap(reinterpret_cast<void*>(begin + (uintptr_t{20} << 20)), uintptr_t{8} << 20);
    for (const bool opens : {true, false}) {
        const Pages pages = found(opens, begin, last + kPage);
        CHECK(!pages.empty() && pages.front() == begin && pages.back() == last);
    }
}

TEST(page_scan_ends_when_its_time_is_over) {
    const uintptr_t begin = reserve(kReserved);
    touch(begin + kReserved - kPage);
    for (const bool opens : {true, false}) {
        PageScan scan(opens);
        CHECK(!scan.next(begin, begin + kReserved, TimeLimit(-1)).any());
        CHECK(scan.late());
    }
    // And where the recorder's own thread is waited for.
    recorder().helper_stops.store(true);
    PageScan scan(false);
    CHECK(!scan.next(begin, begin + kReserved, TimeLimit(300'000'000'000, true)).any() &&
          scan.late());
    PageScan other(false);
    other.next(begin, begin + kPage, minutes());
    CHECK(!other.late());
}

TEST(page_scan_a_wait_for_a_processor_is_no_part_of_its_time) {
    constexpr int64_t kLength = 100'000'000;
    const TimeLimit limit(kLength);
    const int64_t began = kernel::monotonic_ns();
    usleep(kLength / 1000 * 3 / 2);
    // Unless the machine stood still for a second.
    CHECK(!limit.over() || kernel::monotonic_ns() - began > 9 * kLength);
    const int64_t used = kernel::own_cpu_ns();
    while (kernel::own_cpu_ns() - used < kLength) {
    }
    CHECK(limit.over());
    const TimeLimit waits(kLength / 20);
    usleep(kLength / 1000);
    CHECK(waits.over());  // ten times as long, whatever it waited for
}

TEST(page_scan_pools_are_known_while_their_arena_is_there) {
    using known_pools::kPool;
    const auto is_known = [](uintptr_t pool) {
        return known_pools::known(known_pools::state(pool));
    };
    constexpr uintptr_t kArena = 0x7000'0010'1000;  // begins in the middle of a pool
    constexpr uintptr_t kSize = uintptr_t{1} << 20;
    const uintptr_t first = (kArena + kPool - 1) & ~(kPool - 1);
    CHECK(!is_known(first));
    known_pools::add(kArena, kArena + kSize);
    size_t known = 0;
    for (uintptr_t pool = first - 2 * kPool; pool < kArena + 2 * kSize; pool += kPool)
        known += is_known(pool) ? 1 : 0;
    CHECK(known == kSize / kPool - 1 && is_known(first));
    CHECK(!is_known(first - kPool));
    // Two tables, one behind the other, and an address that there is no table for.
    known_pools::add(known_pools::kSpan - kPool, known_pools::kSpan + kPool);
    CHECK(is_known(known_pools::kSpan) && is_known(known_pools::kSpan - kPool));
    CHECK(!is_known(~uintptr_t{0} & ~(kPool - 1)));
    known_pools::remove(kArena, kArena + kSize);
    CHECK(!is_known(first));
    known_pools::forget();
    CHECK(!is_known(known_pools::kSpan));
}

TEST(page_scan_a_pool_is_quiet_while_nothing_in_it_is_looked_for) {
    using known_pools::kPool;
    constexpr uintptr_t kArena = 0x6000'0000'0000;
    const auto is_quiet = [](uintptr_t pool) {
        return known_pools::quiet(known_pools::state(pool));
    };
    known_pools::look_for(kArena + 40);  // not counted: nothing is known of it
    known_pools::add(kArena, kArena + 4 * kPool);
    CHECK(is_quiet(kArena) && is_quiet(kArena + kPool));
    known_pools::look_for(kArena + 40);
    CHECK(!is_quiet(kArena) && is_quiet(kArena + kPool));
    known_pools::look_for(kArena + 80);
    known_pools::look_no_more(kArena + 40);
    CHECK(!is_quiet(kArena));
    known_pools::look_no_more(kArena + 80);
    CHECK(is_quiet(kArena));
    known_pools::look_no_more(kArena + 80);  // of one that was never counted
    CHECK(is_quiet(kArena));
    known_pools::remove(kArena, kArena + 4 * kPool);
    CHECK(!is_quiet(kArena));
    // More than can be counted: it is never taken for quiet again.
    known_pools::add(kArena, kArena + 4 * kPool);
    for (int i = 0; i < 1000; ++i) known_pools::look_for(kArena + kPool);
    for (int i = 0; i < 1000; ++i) known_pools::look_no_more(kArena + kPool);
    CHECK(!is_quiet(kArena + kPool) && is_quiet(kArena + 2 * kPool));
    known_pools::never_quiet(kArena + 2 * kPool);
    known_pools::look_no_more(kArena + 2 * kPool);
    CHECK(!is_quiet(kArena + 2 * kPool) && is_quiet(kArena + 3 * kPool));
    known_pools::forget();
    CHECK(!is_quiet(kArena));
}
