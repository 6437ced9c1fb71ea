#include "spool/own_memory.h"

#include "base/pages.h"
#include "spool/layout.h"
#include "spool/spool.h"

#include <atomic>

// What the linker has around this library's own variables.
extern "C" __attribute__((visibility("hidden"))) char __bss_start[];
extern "C" __attribute__((visibility("hidden"))) char _end[];

namespace tachograph::own_memory {
namespace {

constexpr uint32_t kMostTables = 48;

struct Table {
    std::atomic<const void*> at{nullptr};
    size_t bytes = 0;
    const std::atomic<uint32_t>* used = nullptr;  // entries, from the begin on; null: any may be
    size_t entry = 0;                             // bytes

    size_t in_use() const {
        if (!used) return bytes;
        const size_t first = used->load(std::memory_order_relaxed) * entry;
        return first < bytes ? first : bytes;
    }
};

struct State {
    Table tables[kMostTables];
    std::atomic<uint32_t> count{0};
};
constinit State g;

// Pages that were not touched take no room: most of the tables is for programs larger than most.
uint64_t resident(uintptr_t begin, uintptr_t end) {
    return pages::resident(pages::begin_of(begin), end);
}

uint64_t resident(const void* at, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(at);
    return resident(begin, begin + bytes);
}

}  // namespace

void note(const void* table, size_t bytes, const std::atomic<uint32_t>* used, size_t entry) {
    const uint32_t index = g.count.fetch_add(1, std::memory_order_relaxed);
    if (index >= kMostTables) return;
    g.tables[index].bytes = bytes;
    g.tables[index].used = used;
    g.tables[index].entry = entry;
    g.tables[index].at.store(table, std::memory_order_release);
}

Range first_outside(Range range) {
    for (bool moved = true; moved;) {
        moved = false;
        for (const Table& table : g.tables) {
            const auto begin = reinterpret_cast<uint64_t>(table.at.load(std::memory_order_acquire));
            const uint64_t end = pages::round_up(begin + table.bytes);
            if (begin == 0 || end <= range.begin || begin >= range.end) continue;
            if (begin > range.begin) {
                range.end = begin;
            } else {
                range.begin = end < range.end ? end : range.end;
                moved = true;
            }
        }
    }
    return range;
}

void look() {
    uint64_t bytes = spool::mapped_bytes() + resident(reinterpret_cast<uintptr_t>(__bss_start),
                                                      reinterpret_cast<uintptr_t>(_end));
    for (const Table& table : g.tables)
        if (const void* at = table.at.load(std::memory_order_acquire); at)
            bytes += resident(at, table.in_use());
    uint64_t* most = &spool::control()->own_bytes;
    if (bytes > __atomic_load_n(most, __ATOMIC_RELAXED))
        __atomic_store_n(most, bytes, __ATOMIC_RELAXED);
}

}  // namespace tachograph::own_memory
