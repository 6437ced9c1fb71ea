#include "memory/reserved_ranges.h"

#include "memory/range_table.h"
#include "memory/resident_pages.h"

namespace tachograph::reserved_ranges {
namespace {

constexpr size_t kMost = 16 * 1024;

struct State {
    RangeTable<Range, kMost> ranges;
    uintptr_t span = 0;
};
constinit State g;

}  // namespace

bool open() { return g.ranges.open(); }

size_t count() { return g.ranges.count(); }

uintptr_t span() { return g.span; }

const Range& at(size_t index) { return g.ranges[index]; }

const Range* holding(uintptr_t begin, uintptr_t end) {
    const size_t at = g.ranges.first_behind(begin);
    const bool there =
        at < g.ranges.count() && g.ranges[at].begin <= begin && end <= g.ranges[at].end;
    return there ? &g.ranges[at] : nullptr;
}

bool part_from(uintptr_t address, Range* part) {
    const size_t at = g.ranges.first_behind(address);
    if (at >= g.ranges.count()) return false;
    const Range& range = g.ranges[at];
    part->owner = range.owner;
    part->begin = range.begin > address ? range.begin : address;
    const uintptr_t next = resident_pages::part_of(part->begin) + resident_pages::kPart;
    part->end = range.end < next ? range.end : next;
    return true;
}

const Range* first_behind(uintptr_t address) {
    const size_t at = g.ranges.first_behind(address);
    return at < g.ranges.count() ? &g.ranges[at] : nullptr;
}

bool add(const Range& range) {
    size_t at = g.ranges.first_behind(range.begin);
    const auto joins = [&](size_t other) {
        return !range.owner.known && !g.ranges[other].owner.known;
    };
    if (at > 0 && g.ranges[at - 1].end == range.begin && joins(at - 1)) {
        g.ranges[--at].end = range.end;
    } else if (!g.ranges.insert(at, range)) {
        return false;
    }
    g.span += range.end - range.begin;
    if (at + 1 < g.ranges.count() && g.ranges[at + 1].begin == range.end && joins(at + 1)) {
        g.ranges[at].end = g.ranges[at + 1].end;
        g.ranges.erase(at + 1);
    }
    return true;
}

void cut(uintptr_t begin, uintptr_t end) {
    size_t at = g.ranges.first_behind(begin);
    while (at < g.ranges.count() && g.ranges[at].begin < end) {
        Range& range = g.ranges[at];
        const Range before{range.begin, begin, range.owner};
        const Range behind{end, range.end, range.owner};
        g.span -= (behind.begin < behind.end ? end : range.end) -
                  (before.begin < before.end ? begin : range.begin);
        if (before.begin < before.end) {
            range = before;
            ++at;
            if (behind.begin < behind.end && !g.ranges.insert(at, behind))
                g.span -= behind.end - end;
        } else if (behind.begin < behind.end) {
            range = behind;
        } else {
            g.ranges.erase(at);
            continue;
        }
        ++at;
    }
}

}  // namespace tachograph::reserved_ranges
