#include "memory/resident_pages.h"

#include "base/kernel.h"
#include "base/mixing.h"
#include "spool/own_memory.h"

#include <cstring>

namespace tachograph::resident_pages {
namespace {

constexpr size_t kPages = kRegion / kPage;
constexpr size_t kWords = kPages / 64;
constexpr size_t kWays = 8;
constexpr size_t kSets = 2048;
// A part of it may be no mapping any more, which the kernel does not tell apart.
constexpr size_t kPart = 512;

struct Region {
    uintptr_t base;
    size_t known;  // pages in memory
};

struct State {
    Region* regions = nullptr;  // kWays that share a set
    uint64_t* bits = nullptr;   // kWords for each region
    uint8_t* answer = nullptr;  // the kernel's, a byte for each page
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

// The pages that are in memory, of 64 from `page` on.
uint64_t word_of(size_t page) {
    uint64_t word = 0;
    for (size_t byte = 0; byte < 8; ++byte) word |= packed(g.answer + page + 8 * byte) << 8 * byte;
    return word;
}

bool ask(uintptr_t at, size_t pages, uint8_t* answer) {
    return kernel::call(SYS_mincore, static_cast<long>(at), static_cast<long>(pages * kPage),
                        kernel::address(answer)) == 0;
}

// Fills the answers of a region; what is outside of [begin, end) is not in memory.
void ask_all(uintptr_t base, uintptr_t begin, uintptr_t end) {
    const size_t first = (begin - base) / kPage;
    const size_t last = (end - base) / kPage;
    memset(g.answer, 0, kPages);
    if (ask(begin, last - first, g.answer + first)) return;
    for (size_t page = first; page < last;) {
        const size_t part = last - page < kPart ? last - page : kPart;
        if (!ask(base + page * kPage, part, g.answer + page)) memset(g.answer + page, 0, part);
        page += part;
    }
}

// Bits of the pages of word `word` that lie in [first, last).
uint64_t mask_of(size_t word, size_t first, size_t last) {
    uint64_t mask = ~uint64_t{0};
    if (first > word * 64) mask &= ~uint64_t{0} << (first - word * 64);
    if (last < word * 64 + 64) mask &= ~(~uint64_t{0} << (last - word * 64));
    return mask;
}

template <typename F>
void each(uintptr_t base, size_t word, uint64_t bits, F told) {
    for (; bits != 0; bits &= bits - 1)
        told(base + (word * 64 + static_cast<size_t>(__builtin_ctzll(bits))) * kPage);
}

size_t count_of(uint64_t bits) { return static_cast<size_t>(__builtin_popcountll(bits)); }

}  // namespace

bool open() {
    return (g.regions || own_memory::map(&g.regions, sizeof(Region) * kSets * kWays)) &&
           (g.bits || own_memory::map(&g.bits, sizeof(uint64_t) * kWords * kSets * kWays)) &&
           (g.answer || own_memory::map(&g.answer, kPages));
}

bool full(uintptr_t begin, uintptr_t end) {
    const uintptr_t base = region_of(begin);
    const Region* region = find(base, false);
    if (!region || region->known < (end - begin) / kPage) return false;
    const size_t first = (begin - base) / kPage;
    const size_t last = (end - base) / kPage;
    for (size_t word = first / 64; word < (last + 63) / 64; ++word) {
        const uint64_t mask = mask_of(word, first, last);
        if ((bits_of(region)[word] & mask) != mask) return false;
    }
    return true;
}

Change compare(uintptr_t begin, uintptr_t end, bool learn, const Visitor& visitor) {
    const uintptr_t base = region_of(begin);
    Change change;
    ask_all(base, begin, end);
    Region* region = find(base, false);
    const size_t first = (begin - base) / kPage;
    const size_t last = (end - base) / kPage;
    for (size_t word = first / 64; word < (last + 63) / 64; ++word) {
        const uint64_t mask = mask_of(word, first, last);
        const uint64_t is = word_of(word * 64) & mask;
        const uint64_t was = region ? bits_of(region)[word] & mask : 0;
        if (is == was) continue;
        const uint64_t came = is & ~was;
        const uint64_t went = was & ~is;
        change.came += count_of(came);
        change.went += count_of(went);
        if (came != 0 && learn && !region) region = find(base, true);
        if (!region) {
            change.known = change.known && (came == 0 || !learn);
            continue;
        }
        each(base, word, went, [&](uintptr_t page) { visitor.went(page); });
        bits_of(region)[word] &= ~went;
        region->known -= count_of(went);
        if (!learn) continue;
        each(base, word, came, [&](uintptr_t page) { visitor.came(visitor.context, page); });
        bits_of(region)[word] |= came;
        region->known += count_of(came);
    }
    return change;
}

size_t forget(uintptr_t begin, uintptr_t end, const Visitor& visitor) {
    size_t gone = 0;
    for (uintptr_t base = region_of(begin); base < end; base += kRegion) {
        Region* region = find(base, false);
        if (!region || region->known == 0) continue;
        const size_t first = begin > base ? (begin - base) / kPage : 0;
        const size_t last = end < base + kRegion ? (end - base + kPage - 1) / kPage : kPages;
        for (size_t word = first / 64; word < (last + 63) / 64; ++word) {
            uint64_t* bits = bits_of(region) + word;
            const uint64_t went = *bits & mask_of(word, first, last);
            if (went == 0) continue;
            each(base, word, went, [&](uintptr_t page) { visitor.went(page); });
            *bits &= ~went;
            region->known -= count_of(went);
            gone += count_of(went);
        }
    }
    return gone;
}

}  // namespace tachograph::resident_pages
