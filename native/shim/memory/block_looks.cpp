#include "memory/block_looks.h"

#include "base/bounded_lock.h"
#include "base/kernel.h"
#include "base/pages.h"
#include "memory/blocks.h"
#include "memory/resident_pages.h"
#include "spool/spool.h"

#include <atomic>
#include <cstdint>

namespace tachograph::block_looks {
namespace {

// A look at 1 GiB of single pages takes half a millisecond. Looks take at most one in so many
// parts of the time, beside some time that short programs and those that have been still for a
// while have.
constexpr int64_t kCost = 200;
constexpr int64_t kCreditNs = 10'000'000;
constexpr int64_t kLongestNs = 20'000'000;
constexpr int64_t kPatienceNs = 100'000'000;  // of a look at the end, for another to end
// What is all in memory stays there, but for what the program gives back and what is swapped out.
constexpr int64_t kFullNs = 5'000'000'000;
// A change by less than this part of a block is not told.
constexpr int64_t kFinest = 256;

struct State {
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    std::atomic<bool> owed{false};
    // Of the thread that is at it.
    int64_t left_ns = kCreditNs;  // that looks may take
    int64_t earned_ns = 0;
    int64_t full_ns = 0;  // when those were looked at that are all in memory
    uint32_t place = 0;   // of the first block that the last look had no time for
    TimeShare share;
};
constinit State g;

// Of the pages that are the block's alone: a header before it has been written in any case.
int64_t resident_of(const blocks::Large& block, PageScan* scan, const TimeLimit& limit) {
    const uintptr_t begin = pages::round_up(block.address);
    const uintptr_t end = pages::begin_of(block.address + static_cast<uintptr_t>(block.size));
    uintptr_t bytes = 0;
    for (uintptr_t at = begin; at < end;) {
        const PageScan::Run run = scan->next(at, end, limit);
        bytes += run.end - run.begin;
        at = run.end;
    }
    return bytes == end - begin ? block.size : static_cast<int64_t>(bytes);
}

bool worth_telling(const blocks::Large& block, int64_t resident) {
    if (block.told == blocks::kUntold) return true;
    if (resident == block.told) return false;
    const int64_t change = resident > block.told ? resident - block.told : block.told - resident;
    return change >= block.size / kFinest || resident == block.size || resident == 0;
}

// How much time looks may take now; below 0: none.
int64_t credit(int64_t now_ns) {
    if (g.earned_ns != 0) g.left_ns += (now_ns - g.earned_ns) / kCost;
    g.earned_ns = now_ns;
    if (g.left_ns > kCreditNs) g.left_ns = kCreditNs;
    return g.left_ns;
}

// False: the time was over before all were looked at.
bool look_at_all(int64_t now_ns, const TimeLimit& limit) {
    const int64_t used = kernel::clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool full = now_ns - g.full_ns >= kFullNs;
    blocks::Large block;
    PageScan scan(true);
    uint32_t place = g.place;
    for (; !scan.late() && blocks::large_from(place, &block); place = block.place + 1) {
        if (!full && block.told == block.size) continue;
        const int64_t resident = resident_of(block, &scan, limit);
        if (!scan.late() && worth_telling(block, resident))
            blocks::tell(block, kernel::monotonic_ns(), resident);
    }
    // The block that it was at is passed over the next time: it may be too large for any look.
    g.place = scan.late() ? place : 0;
    g.left_ns -= kernel::clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
    if (full && !scan.late()) g.full_ns = now_ns;
    return !scan.late();
}

}  // namespace

void begin(int64_t now_ns) { g.share.begin(now_ns); }

void look(bool now) {
    if (!blocks::any_large()) return g.owed.store(false, std::memory_order_relaxed);
    const int64_t asked = kernel::monotonic_ns();
    // At the end the recorder's own thread may be in the middle of a look, which is not the last.
    const BoundedLock lock(g.busy, Until{now ? asked + kPatienceNs : asked});
    if (!lock) return;
    const int64_t began = kernel::monotonic_ns();
    const bool may = credit(began) >= 0 || now;
    if (now) g.place = 0;
    const TimeLimit limit = now ? g.share.take(began) : TimeLimit(kLongestNs, true);
    const bool whole = may && look_at_all(began, limit);
    if (now && !whole) spool::count(Loss::page_scans_cut);
    g.owed.store(!whole, std::memory_order_relaxed);
}

bool look_if_owed() {
    if (!g.owed.load(std::memory_order_relaxed)) return false;
    look(false);
    return !g.owed.load(std::memory_order_relaxed);
}

void after_fork_in_child() {
    g.busy.clear();
    g.owed.store(false);
    g.left_ns = kCreditNs;
    g.earned_ns = g.full_ns = 0;
    g.place = 0;
}

}  // namespace tachograph::block_looks
