// The registry of threads: slots taken, given back and taken again.
#include "stacks/threads.h"
#include "base/bounded_lock.h"
#include "base/kernel.h"
#include "check.h"
#include "spool/layout.h"
#include "spool/spool.h"

#include <unistd.h>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

using namespace tachograph;

namespace {

void open() {
    CHECK(spool::open(tests::folder, 4 << 20, 1) == 0 && spool::prepare_second() == 0);
    CHECK(threads::open());
}

// No kernel hands out such a thread id, so no clock answers for it.
constexpr pid_t kNobody = 0x3FFF'0000;

}  // namespace

TEST(threads_slots_are_used_again) {
    open();
    const pid_t self = kernel::gettid();
    threads::Thread* first = threads::add(self, true, 100);
    threads::Thread* second = threads::add(kNobody, false, 101);
    CHECK(first && second && first != second && first->id == 0 && second->id == 1);
    CHECK(threads::find(self) == first && threads::find(kNobody) == second);
    CHECK(!threads::find(kNobody + 1) && threads::high_water() == 2);
    CHECK(threads::at(0) == first && threads::is_slot(first) && threads::is_slot(second));
    CHECK(!threads::is_slot(nullptr) && !threads::is_slot(reinterpret_cast<char*>(first) + 1));
    CHECK(!threads::is_slot(first + threads::kMostThreads) && !threads::is_slot(first - 1));

    threads::write_name(first->id, true, "first", 5);
    threads::write_name(first->id, true, "", 0);
    threads::end(first, self, 200);
    CHECK(!threads::find(self));
    threads::end(first, self, 201);  // once only
    threads::Thread* third = threads::add(kNobody + 1, false, 300);
    CHECK(third == first && third->id == 2 && threads::high_water() == 2);
    // Gone, and no hook saw its end: its clock is gone too, and the last value that was seen
    // counts.
    threads::end(second, kNobody, 400, 4000);
    threads::end(third, kNobody + 1, 401);  // nothing is known
}

// The helper says that a thread is gone; another has taken the slot since.
TEST(threads_slot_of_another_is_not_ended) {
    open();
    const pid_t self = kernel::gettid();
    threads::Thread* slot = threads::add(kNobody, false, 100);
    threads::end(slot, kNobody, 200, 0);
    CHECK(threads::add(self, false, 300) == slot);
    threads::end(slot, kNobody, 400, 0);
    CHECK(threads::find(self) == slot);
    threads::end(slot, self, 500);
}

TEST(threads_no_slot_left) {
    open();
    for (uint32_t i = 0; i < threads::kMostThreads; ++i)
        CHECK(threads::add(kNobody + static_cast<pid_t>(i), false, i));
    const auto missed = [] {
        return spool::control()->losses[static_cast<uint32_t>(Loss::threads_missed)];
    };
    CHECK(!threads::add(kernel::gettid(), false, 1));
    CHECK(missed() == 1);
    // The survey finds the same threads again.
    CHECK(!threads::add(kernel::gettid(), false, 1) && missed() == 1);
    const pid_t others = kNobody + static_cast<pid_t>(threads::kMostThreads);
    for (pid_t round = 0; round < 3; ++round)
        for (pid_t i = 0; i < 2000; ++i) CHECK(!threads::add(others + i, false, 1));
    CHECK(missed() == 2001);
    // Those have ended, as far as the kernel knows, and their ids are given to others.
    threads::forget_missed_that_ended();
    CHECK(!threads::add(kernel::gettid(), false, 1) && missed() == 2001);
    CHECK(!threads::add(others, false, 1) && missed() == 2002);
    threads::end(threads::at(77), kNobody + 77, 2, 0);
    CHECK(threads::add(kernel::gettid(), false, 3) == threads::at(77));
}

// Every thread that was added has one id, one start and one end (test_segments.py counts them).
namespace {

// The least CPU time of a look for so many threads that are in no slot, as a survey does it.
int64_t look_for(pid_t first, int count) {
    int64_t least = INT64_MAX;
    for (int round = 0; round < 7; ++round) {
        const int64_t begin = kernel::own_cpu_ns();
        for (int i = 0; i < count; ++i) CHECK(!threads::find(first + i));
        const int64_t took = kernel::own_cpu_ns() - begin;
        if (took < least) least = took;
    }
    return least;
}

}  // namespace

// It was a walk through all slots for each: 800 times as long.
TEST(threads_are_found_without_a_search) {
    open();
    constexpr int kMany = 8000;
    constexpr int kMost = 20;  // times: caches may count, and a walk through slots may not
    for (int i = 0; i < 10; ++i) CHECK(threads::add(kNobody + i, false, 100));
    const int64_t few = look_for(kNobody + kMany, kMany);
    for (int i = 10; i < kMany; ++i) CHECK(threads::add(kNobody + i, false, 100));
    for (int i = 0; i < kMany; ++i) CHECK(threads::find(kNobody + i) == threads::at(i));
    const int64_t many = look_for(kNobody + kMany, kMany);
    CHECK(many <= kMost * few);
    // Ids that share a place: all are found, and the others as well when one has ended.
    threads::Thread* shares = threads::add(kNobody + 65536, false, 100);
    CHECK(shares && threads::find(kNobody + 65536) == shares &&
          threads::find(kNobody) == threads::at(0));
    threads::end(shares, kNobody + 65536, 200, 0);
    CHECK(threads::find(kNobody) == threads::at(0) && !threads::find(kNobody + 65536));
}

TEST(threads_come_and_go) {
    constexpr uint32_t kThreads = 8;
    constexpr uint32_t kLives = 1500;
    open();
    std::atomic<bool> done{false};
    // Looks at the slots as the helper does.
    std::thread watcher([&] {
        while (!done.load())
            for (uint32_t index = 0; index < threads::high_water(); ++index) {
                const threads::Thread* thread = threads::at(index);
                const pid_t tid = thread->tid.load(std::memory_order_acquire);
                if (tid > 0) CHECK(thread->id < kThreads * kLives);
            }
    });
    std::vector<std::thread> all;
    for (uint32_t thread = 0; thread < kThreads; ++thread)
        all.emplace_back([] {
            const pid_t tid = kernel::gettid();
            for (uint32_t life = 0; life < kLives; ++life) {
                threads::Thread* mine = threads::add(tid, false, life);
                CHECK(mine && threads::find(tid) == mine);
                threads::set_own(mine);
                CHECK(threads::own() == mine);
                threads::end(mine, tid, life + 1);
                CHECK(!threads::find(tid));
            }
        });
    for (std::thread& thread : all) thread.join();
    done.store(true);
    watcher.join();
    CHECK(!threads::own());
    CHECK(threads::high_water() <= kThreads);
    printf("%u %u\n", kThreads * kLives, kThreads * kLives);
}

TEST(threads_wait_for_a_lock_until_a_time) {
    std::atomic_flag flag = ATOMIC_FLAG_INIT;
    const int64_t now = kernel::monotonic_ns();
    CHECK(BoundedLock(flag, Until{now}));  // a free one is not asked for the time
    flag.test_and_set();
    CHECK(!BoundedLock(flag, Until{now}));
    std::thread holder([&flag] {
        usleep(20'000);
        release(flag);
    });
    CHECK(BoundedLock(flag, Until{now + 60'000'000'000}));
    holder.join();
}
