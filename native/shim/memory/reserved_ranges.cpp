#include "memory/reserved_ranges.h"

#include "memory/resident_pages.h"
#include "spool/own_memory.h"
#include "spool/spool.h"

#include <cstring>

namespace tachograph::reserved_ranges {
namespace {

constexpr size_t kMost = 16 * 1024;

struct State {
    Range* ranges = nullptr;  // sorted, apart from each other
    size_t count = 0;
    uintptr_t span = 0;
};
constinit State g;

size_t first_behind(uintptr_t address) {
    size_t low = 0;
    size_t high = g.count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (g.ranges[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool insert(size_t at, const Range& range) {
    if (g.count >= kMost) {
        spool::count(Loss::mappings_untracked);
        return false;
    }
    memmove(g.ranges + at + 1, g.ranges + at, (g.count - at) * sizeof(Range));
    g.ranges[at] = range;
    ++g.count;
    return true;
}

void erase(size_t at) {
    --g.count;
    memmove(g.ranges + at, g.ranges + at + 1, (g.count - at) * sizeof(Range));
}

}  // namespace

bool open() { return g.ranges || own_memory::map(&g.ranges, sizeof(Range) * kMost); }

size_t count() { return g.count; }

uintptr_t span() { return g.span; }

const Range& at(size_t index) { return g.ranges[index]; }

const Range* holding(uintptr_t begin, uintptr_t end) {
    const size_t at = first_behind(begin);
    const bool there = at < g.count && g.ranges[at].begin <= begin && end <= g.ranges[at].end;
    return there ? &g.ranges[at] : nullptr;
}

bool part_from(uintptr_t address, Range* part) {
    const size_t at = first_behind(address);
    if (at >= g.count) return false;
    const Range& range = g.ranges[at];
    part->owner = range.owner;
    part->begin = range.begin > address ? range.begin : address;
    const uintptr_t next = resident_pages::part_of(part->begin) + resident_pages::kPart;
    part->end = range.end < next ? range.end : next;
    return true;
}

bool add(const Range& range) {
    size_t at = first_behind(range.begin);
    const auto joins = [&](size_t other) {
        return !range.owner.known && !g.ranges[other].owner.known;
    };
    if (at > 0 && g.ranges[at - 1].end == range.begin && joins(at - 1)) {
        g.ranges[--at].end = range.end;
    } else if (!insert(at, range)) {
        return false;
    }
    g.span += range.end - range.begin;
    if (at + 1 < g.count && g.ranges[at + 1].begin == range.end && joins(at + 1)) {
        g.ranges[at].end = g.ranges[at + 1].end;
        erase(at + 1);
    }
    return true;
}

void cut(uintptr_t begin, uintptr_t end) {
    size_t at = first_behind(begin);
    while (at < g.count && g.ranges[at].begin < end) {
        Range& range = g.ranges[at];
        const Range before{range.begin, begin, range.owner};
        const Range behind{end, range.end, range.owner};
        g.span -= (behind.begin < behind.end ? end : range.end) -
                  (before.begin < before.end ? begin : range.begin);
        if (before.begin < before.end) {
            range = before;
            ++at;
            if (behind.begin < behind.end && !insert(at, behind)) g.span -= behind.end - end;
        } else if (behind.begin < behind.end) {
            range = behind;
        } else {
            erase(at);
            continue;
        }
        ++at;
    }
}

}  // namespace tachograph::reserved_ranges
