#include "base/unforked_ranges.h"

#include "base/kernel.h"
#include "base/large_data.h"
#include "base/pages.h"

#include <sys/mman.h>
#include <atomic>

namespace tachograph::unforked_ranges {
namespace {

constexpr size_t kMost = 256;  // one that is too many is not avoided
constexpr int kMostTries = 8;

struct Range {
    std::atomic<uintptr_t> begin{0};  // 0: none
    std::atomic<uintptr_t> end{0};    // 0: about to be written
};

TG_LARGE_ZEROS constinit Range g_ranges[kMost];
constinit std::atomic<size_t> g_used{0};  // none is behind
constinit std::atomic<bool> g_are_holes{false};

void add(uintptr_t begin, uintptr_t end) {
    for (size_t i = 0; i < kMost; ++i) {
        Range& range = g_ranges[i];
        uintptr_t none = 0;
        if (range.begin.load() == begin && range.end.load() == end) return;
        if (!range.begin.compare_exchange_strong(none, begin)) continue;
        range.end.store(end);
        size_t used = g_used.load();
        while (used < i + 1 && !g_used.compare_exchange_weak(used, i + 1)) {
        }
        return;
    }
}

// Calls `act` with each range that has a part in [from, to).
template <typename Act>
void each_in(uintptr_t from, uintptr_t to, const Act& act) {
    const size_t used = g_used.load();
    for (size_t i = 0; i < used; ++i) {
        const uintptr_t begin = g_ranges[i].begin.load();
        const uintptr_t end = g_ranges[i].end.load();
        if (begin != 0 && begin < to && from < end) act(g_ranges[i], begin, end);
    }
}

bool is_in_hole(long at, size_t size) {
    const auto begin = static_cast<uintptr_t>(at);
    bool found = false;
    each_in(begin, begin + size, [&](const Range&, uintptr_t, uintptr_t) { found = true; });
    return found;
}

}  // namespace

void advised(uintptr_t address, size_t size, int advice) {
    const uintptr_t to = address + pages::round_up(size);
    if (advice == MADV_DONTFORK && size > 0) add(address, to);
    if (advice != MADV_DOFORK) return;
    each_in(address, to, [&](Range& range, uintptr_t begin, uintptr_t end) {
        range.end.store(0);
        range.begin.store(0);
        if (begin < address) add(begin, address);
        if (to < end) add(to, end);
    });
}

void become_holes() {
    if (g_used.load() != 0) g_are_holes.store(true);
}

}  // namespace tachograph::unforked_ranges

namespace tachograph {

long kernel::map_new(size_t size, int protection, int flags, long fd) {
    const auto bytes = static_cast<long>(size);
    long in_holes[unforked_ranges::kMostTries];
    int tries = 0;
    long got = kernel::call(SYS_mmap, 0, bytes, protection, flags, fd, 0);
    // As long as it lies there, the next one lies elsewhere.
    while (unforked_ranges::g_are_holes.load(std::memory_order_relaxed) &&
           tries < unforked_ranges::kMostTries && !kernel::failed(got) &&
           unforked_ranges::is_in_hole(got, size)) {
        in_holes[tries++] = got;
        got = kernel::call(SYS_mmap, 0, bytes, protection, flags, fd, 0);
    }
    while (tries > 0) kernel::call(SYS_munmap, in_holes[--tries], bytes);
    return got;
}

}  // namespace tachograph
