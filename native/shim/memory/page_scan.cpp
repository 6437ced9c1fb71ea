#include "memory/page_scan.h"

#include "base/kernel.h"
#include "stacks/recorder.h"

#include <fcntl.h>
#include <cstring>

namespace tachograph {
namespace {

constexpr uintptr_t kScannedPage = 4096;
constexpr uintptr_t kScannedPart = uintptr_t{2} << 20;
// Asked for at a time. Of mincore: a byte on the stack for each, which may be a small one. Of
// PAGEMAP_SCAN: as many as are in memory, so that the program's own calls of mmap, which wait for
// it, do not wait for long.
constexpr size_t kMincorePages = 2048;
constexpr uint64_t kPagemapPages = 32 * 1024;

// struct pm_scan_arg of the kernel's fs.h, which is in no older header.
struct PagemapScan {
    uint64_t size;
    uint64_t flags;
    uint64_t start;
    uint64_t end;
    uint64_t walk_end;
    uint64_t runs;
    uint64_t most_runs;
    uint64_t most_pages;
    uint64_t category_inverted;
    uint64_t category_mask;
    uint64_t category_anyof_mask;
    uint64_t return_mask;
};
static_assert(sizeof(PagemapScan) == 96);
constexpr long kPagemapScan = 0xC0606610;  // _IOWR('f', 16, struct pm_scan_arg)
constexpr uint64_t kPresent = 1 << 3;      // PAGE_IS_PRESENT

}  // namespace

TimeLimit::TimeLimit(int64_t length_ns, bool ends_for_helper)
    : soon_ns_(kernel::monotonic_ns() + length_ns),
      at_last_ns_(soon_ns_ + (kMostWaits - 1) * length_ns),
      cpu_ns_(kernel::own_cpu_ns() + length_ns),
      ends_for_helper_(ends_for_helper) {}

bool TimeLimit::over() const {
    if (ends_for_helper_ && recorder().helper_stops.load(std::memory_order_relaxed)) return true;
    const int64_t now = kernel::monotonic_ns();
    return now >= soon_ns_ && (now >= at_last_ns_ || kernel::own_cpu_ns() >= cpu_ns_);
}

// Of the thread, as the first one of the process may have ended.
PageScan::PageScan(bool opens) {
    if (opens)
        pagemap_ = kernel::call(SYS_openat, AT_FDCWD, kernel::address("/proc/thread-self/pagemap"),
                                O_RDONLY | O_CLOEXEC);
}

PageScan::~PageScan() {
    if (pagemap_ >= 0) kernel::call(SYS_close, pagemap_);
}

PageScan::Run PageScan::next(uintptr_t at, uintptr_t end, const TimeLimit& limit) {
    while (at < end) {
        if (at < from_ || at >= to_) {
            late_ = limit.over();
            if (late_) break;
            fill(at, end);
        }
        for (size_t i = 0; i < count_; ++i) {
            if (runs_[i].end <= at) continue;
            const uintptr_t begin = runs_[i].begin > at ? runs_[i].begin : at;
            if (begin >= end) return {end, end};
            return {begin, runs_[i].end < end ? runs_[i].end : end};
        }
        at = to_;
    }
    return {end, end};
}

void PageScan::fill(uintptr_t at, uintptr_t end) {
    count_ = 0;
    from_ = at;
    if (!ask_pagemap(at, end)) ask_mincore(at, end);
}

bool PageScan::ask_pagemap(uintptr_t at, uintptr_t end) {
    if (pagemap_ < 0) return false;
    PagemapScan scan{};
    scan.size = sizeof scan;
    scan.start = at;
    scan.end = end;
    scan.runs = reinterpret_cast<uint64_t>(runs_);
    scan.most_runs = kMostRuns;
    scan.most_pages = kPagemapPages;
    scan.category_mask = scan.return_mask = kPresent;
    const long found = kernel::call(SYS_ioctl, pagemap_, kPagemapScan, kernel::address(&scan));
    if (found < 0 || scan.walk_end <= at) {
        kernel::call(SYS_close, pagemap_);
        pagemap_ = -1;
        return false;
    }
    count_ = static_cast<size_t>(found);
    to_ = scan.walk_end;
    return true;
}

void PageScan::ask_mincore(uintptr_t at, uintptr_t end) {
    alignas(uint64_t) uint8_t pages[kMincorePages];
    to_ = end - at < kMincorePages * kScannedPage ? end : at + kMincorePages * kScannedPage;
    const auto ask = [&] {
        return kernel::call(SYS_mincore, static_cast<long>(at), static_cast<long>(to_ - at),
                            kernel::address(pages)) == 0;
    };
    if (!ask()) {
        // Some of it is no mapping any more. There is nothing of the program's in such a part.
        const uintptr_t next = (at & ~(kScannedPart - 1)) + kScannedPart;
        if (to_ > next) to_ = next;
        if (!ask()) return;
    }
    const size_t asked = (to_ - at) / kScannedPage;
    memset(pages + asked, 0, (8 - asked % 8) % 8);
    for (size_t page = 0; page < asked;) {
        uint64_t eight;
        memcpy(&eight, pages + page / 8 * 8, sizeof eight);
        if (page % 8 == 0 && (eight & 0x0101010101010101ull) == 0) {
            page += 8;
            continue;
        }
        if ((pages[page] & 1) == 0) {
            ++page;
            continue;
        }
        const size_t first = page;
        while (page < asked && (pages[page] & 1) != 0) ++page;
        runs_[count_++] = {at + first * kScannedPage, at + page * kScannedPage, kPresent};
        if (count_ == kMostRuns) {
            to_ = at + page * kScannedPage;
            return;
        }
    }
}

}  // namespace tachograph
