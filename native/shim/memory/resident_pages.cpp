#include "memory/resident_pages.h"

#include "base/kernel.h"
#include "spool/own_memory.h"
#include "stacks/recorder.h"
#include "tachograph/mixing.h"

#include <fcntl.h>
#include <cstring>

namespace tachograph {
namespace {

constexpr uintptr_t kScannedPage = pages::kPiece;
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
    const auto ask = [&] { return pages::ask(at, to_, pages) == 0; };
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

namespace tachograph::resident_pages {
namespace {

constexpr size_t kPages = kRegion / kPage;
constexpr size_t kWords = kPages / 64;
constexpr size_t kWays = 8;
constexpr size_t kSets = 2048;

struct Region {
    uintptr_t base;
    size_t known;  // pages in memory
};

struct State {
    Region* regions = nullptr;  // kWays that share a set
    uint64_t* bits = nullptr;   // kWords for each region
};
constinit State g;

uint64_t* bits_of(const Region* region) { return g.bits + (region - g.regions) * kWords; }

Region* find(uintptr_t base, bool add) {
    Region* set = g.regions + (mix(base / kRegion) % kSets) * kWays;
    Region* empty = nullptr;
    for (Region* region = set; region < set + kWays; ++region) {
        if (region->base == base) return region;
        if (!empty && region->known == 0) empty = region;
    }
    if (!add || !empty) return nullptr;
    empty->base = base;
    return empty;
}

// Eight bytes, of which the lowest bits count, as eight bits.
uint64_t packed(const uint8_t* bytes) {
    uint64_t eight;
    memcpy(&eight, bytes, sizeof eight);
    return (eight & 0x0101010101010101ull) * 0x0102040810204080ull >> 56;
}

// Bits of the pages of word `word` that lie in [first, last).
uint64_t mask_of(size_t word, size_t first, size_t last) {
    uint64_t mask = ~uint64_t{0};
    if (first > word * 64) mask &= ~uint64_t{0} << (first - word * 64);
    if (last < word * 64 + 64) mask &= ~(~uint64_t{0} << (last - word * 64));
    return mask;
}

// Where [begin, end), of one part, lies in its region, in pages.
struct Place {
    uintptr_t base;
    size_t first;
    size_t last;

    Place(uintptr_t begin, uintptr_t end)
        : base(region_of(begin)), first((begin - base) / kPage), last((end - base) / kPage) {}
    // The pages of an answer that are in memory, of the region's word `word`.
    uint64_t of(const Answer& answer, size_t word) const {
        const size_t in_part = word % (kPartPages / 64);
        return answer.words[in_part] & mask_of(word, first, last);
    }
};

template <typename F>
void each(uintptr_t base, size_t word, uint64_t bits, F told) {
    for (; bits != 0; bits &= bits - 1)
        told(base + (word * 64 + static_cast<size_t>(__builtin_ctzll(bits))) * kPage);
}

size_t count_of(uint64_t bits) { return static_cast<size_t>(__builtin_popcountll(bits)); }

// The region's pages in [begin, end), which may reach beyond it.
void forget(Region* region, uintptr_t begin, uintptr_t end, const Visitor& visitor) {
    const uintptr_t base = region->base;
    if (region->known == 0 || end <= base || begin >= base + kRegion) return;
    const size_t first = begin > base ? (begin - base) / kPage : 0;
    const size_t last = end < base + kRegion ? (end - base + kPage - 1) / kPage : kPages;
    for (size_t word = first / 64; word < (last + 63) / 64; ++word) {
        uint64_t* bits = bits_of(region) + word;
        const uint64_t went = *bits & mask_of(word, first, last);
        if (went == 0) continue;
        each(base, word, went, [&](uintptr_t page) { visitor.went(visitor.context, page); });
        *bits &= ~went;
        region->known -= count_of(went);
    }
}

}  // namespace

bool open() {
    return (g.regions || own_memory::map(&g.regions, sizeof(Region) * kSets * kWays)) &&
           (g.bits || own_memory::map(&g.bits, sizeof(uint64_t) * kWords * kSets * kWays));
}

Answer ask(uintptr_t begin, uintptr_t end) {
    uint8_t pages[kPartPages] = {};  // a byte for each
    const size_t first = (begin - part_of(begin)) / kPage;
    // Where a part of it is no mapping any more there is nothing that belongs to the program.
    if (pages::ask(begin, end, pages + first) != 0) memset(pages, 0, sizeof pages);
    Answer answer{};
    for (size_t eight = 0; eight < kPartPages / 8; ++eight)
        answer.words[eight / 8] |= packed(pages + 8 * eight) << 8 * (eight % 8);
    return answer;
}

bool full(uintptr_t begin, uintptr_t end) {
    const Place place{begin, end};
    const Region* region = find(place.base, false);
    if (!region || region->known < (end - begin) / kPage) return false;
    for (size_t word = place.first / 64; word < (place.last + 63) / 64; ++word) {
        const uint64_t mask = mask_of(word, place.first, place.last);
        if ((bits_of(region)[word] & mask) != mask) return false;
    }
    return true;
}

bool empty(uintptr_t begin, uintptr_t end) {
    const Place place{begin, end};
    const Region* region = find(place.base, false);
    if (!region || region->known == 0) return true;
    for (size_t word = place.first / 64; word < (place.last + 63) / 64; ++word)
        if ((bits_of(region)[word] & mask_of(word, place.first, place.last)) != 0) return false;
    return true;
}

bool any(uintptr_t base) {
    const Region* region = find(base, false);
    return region && region->known > 0;
}

uintptr_t next_region(size_t* place) {
    for (; g.regions && *place < kSets * kWays; ++*place)
        if (g.regions[*place].known > 0) return g.regions[(*place)++].base;
    return 0;
}

size_t news(uintptr_t begin, uintptr_t end, const Answer& answer) {
    const Place place{begin, end};
    const Region* region = find(place.base, false);
    size_t came = 0;
    for (size_t word = place.first / 64; word < (place.last + 63) / 64; ++word)
        came += count_of(place.of(answer, word) & ~(region ? bits_of(region)[word] : 0));
    return came;
}

Change compare(uintptr_t begin, uintptr_t end, const Answer& answer, bool learn,
               const Visitor& visitor) {
    const Place place{begin, end};
    Change change;
    Region* region = find(place.base, false);
    for (size_t word = place.first / 64; word < (place.last + 63) / 64; ++word) {
        const uint64_t mask = mask_of(word, place.first, place.last);
        const uint64_t is = place.of(answer, word);
        const uint64_t was = region ? bits_of(region)[word] & mask : 0;
        if (is == was) continue;
        const uint64_t came = is & ~was;
        const uint64_t went = was & ~is;
        change.came += count_of(came);
        change.went += count_of(went);
        if (came != 0 && learn && !region) region = find(place.base, true);
        if (!region) {
            change.known = change.known && (came == 0 || !learn);
            continue;
        }
        each(place.base, word, went, [&](uintptr_t page) { visitor.went(visitor.context, page); });
        bits_of(region)[word] &= ~went;
        region->known -= count_of(went);
        if (!learn) continue;
        each(place.base, word, came, [&](uintptr_t page) { visitor.came(visitor.context, page); });
        bits_of(region)[word] |= came;
        region->known += count_of(came);
    }
    return change;
}

void forget(uintptr_t begin, uintptr_t end, const Visitor& visitor) {
    if ((end - begin) / kRegion < kSets * kWays) {
        for (uintptr_t base = region_of(begin); base < end; base += kRegion)
            if (Region* region = find(base, false)) forget(region, begin, end, visitor);
        return;
    }
    size_t place = 0;
    while (next_region(&place) != 0) forget(&g.regions[place - 1], begin, end, visitor);
}

}  // namespace tachograph::resident_pages
