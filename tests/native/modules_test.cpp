// The list of executable mappings: read where it may have changed, and no longer than there is
// room.
#include "stacks/modules.h"
#include "base/kernel.h"
#include "check.h"
#include "spool/layout.h"
#include "spool/spool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace tachograph;

namespace {

constexpr uint32_t kMostModules = 16 * 1024;
constexpr uint64_t kNowhere = 0x1000;  // nothing is mapped so low
constexpr size_t kPage = 4096;

[[noreturn]] void skip(const char* why) {
    puts(why);
    fflush(nullptr);
    _Exit(77);
}

void open() {
    CHECK(spool::open(tests::folder, 8 << 20, 1) == 0 && spool::prepare_second() == 0);
    modules::refresh(true);
}

// Calls of read() that this process has made, this one not.
long reads() {
    char text[512] = {};
    const long fd = kernel::call(SYS_openat, AT_FDCWD, kernel::address("/proc/self/io"), O_RDONLY);
    if (fd < 0) skip("this kernel does not count calls of read()");
    CHECK(kernel::call(SYS_read, fd, kernel::address(text), sizeof text - 1) > 0);
    kernel::call(SYS_close, fd);
    const char* found = strstr(text, "syscr: ");
    CHECK(found);
    return atol(found + 7);
}

template <typename F>
bool reads_the_list(F work) {
    const long before = reads();
    work();
    return reads() - before - 1 > 0;
}

// The same, for a moment: the list is not read again at once.
template <typename F>
bool reads_the_list_soon(F work) {
    const int64_t limit = kernel::monotonic_ns() + 900'000'000;
    while (kernel::monotonic_ns() < limit)
        if (reads_the_list(work)) return true;
    return false;
}

uint32_t lost() {
    return static_cast<uint32_t>(
        spool::control()->losses[static_cast<uint32_t>(Loss::modules_lost)]);
}

}  // namespace

TEST(modules_are_read_where_they_may_have_changed) {
    open();
    CHECK(!reads_the_list([] {
        for (int i = 0; i < 100; ++i) modules::refresh(true);
    }));
    CHECK(reads_the_list_soon([] {
        modules::changed();
        modules::refresh(false);
    }));
    // A program counter that lies in none, as in code that is made while the program runs, is
    // looked for at once if that has brought something before; then at each survey, and not at each
    // tick.
    modules::saw(kNowhere);
    modules::refresh(true);
    modules::saw(kNowhere);
    CHECK(!reads_the_list([] {
        for (int i = 0; i < 100; ++i) {
            modules::saw(kNowhere);
            modules::refresh(false);
        }
    }));
    CHECK(reads_the_list([] { modules::refresh(true); }));
}

// A compiler that makes code while the program runs maps it a thousand times a second. Whoever maps
// memory waits while the list is read.
TEST(modules_that_change_all_the_time_take_a_bounded_part) {
    open();
    constexpr size_t kCount = 10'000;
    void* got = mmap(nullptr, 2 * kCount * kPage, PROT_READ,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(got != MAP_FAILED);
    for (size_t i = 0; i < kCount; ++i)
        if (mprotect(static_cast<char*>(got) + 2 * i * kPage, kPage, PROT_NONE) != 0)
            skip("so many mappings are not allowed here");
    const int64_t begun = kernel::monotonic_ns();
    int64_t taken = 0;
    int64_t now = begun;
    while (now - begun < 1'000'000'000) {
        const int64_t before = kernel::monotonic_ns();
        modules::changed();
        modules::refresh(false);
        now = kernel::monotonic_ns();
        taken += now - before;
        usleep(1'000);
    }
    CHECK(taken < (now - begun) / 8);
}

TEST(modules_without_room_are_counted_once) {
    open();
    CHECK(lost() == 0);
    constexpr size_t kCount = kMostModules + 100;
    void* got = mmap(nullptr, 2 * kCount * kPage, PROT_READ | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) skip("no executable memory");
    for (size_t i = 0; i < kCount; ++i)
        if (mprotect(static_cast<char*>(got) + (2 * i + 1) * kPage, kPage, PROT_READ) != 0)
            skip("so many mappings are not allowed here");
    modules::changed();
    modules::refresh(true);
    const uint32_t first = lost();
    CHECK(first >= 100 && first < 200);  // and those of the program and its libraries
    modules::changed();
    modules::refresh(true);
    CHECK(lost() == first);
    CHECK(munmap(got, 2 * kCount * kPage) == 0);
    modules::changed();
    modules::refresh(true);
    CHECK(lost() == first);
}
