// The pools of the interpreter's small blocks, as far as they are known: only then may the head of
// a pool be read for the size of a block, which may be another allocator's.
//
// One byte for each 16 KiB of address space, in tables that are made when an arena lies in them.
// Pools of arenas from before are learned from their heads. Any thread may ask and change them.
#pragma once

#include "arch/processor.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::known_pools {

inline constexpr uintptr_t kPool = uintptr_t{16} << 10;
inline constexpr uintptr_t kSpan = uintptr_t{16} << 30;  // of address space, in one table
inline constexpr size_t kTables = (size_t{1} << TG_ADDRESS_BITS) / kSpan;

// Whether it is known, and, in the other bits, how many places in it are looked for.
inline constexpr uint8_t kKnown = 1;
inline constexpr uint8_t kPlace = 2;

struct Table {
    std::atomic<uint8_t> pools[kSpan / kPool];
};
extern std::atomic<Table*> g_tables[kTables] __attribute__((visibility("hidden")));

inline uint8_t state(uintptr_t pool) {
    if (__builtin_expect(pool / kSpan >= kTables, 0)) return 0;
    const Table* table = g_tables[pool / kSpan].load(std::memory_order_relaxed);
    return table ? table->pools[pool % kSpan / kPool].load(std::memory_order_relaxed) : 0;
}

// A pool begins there.
inline bool known(uint8_t state) { return (state & kKnown) != 0; }
// One does, and nothing in it is looked for: what is released there needs no other look. In a
// forked child what the parent looked for still counts.
inline bool quiet(uint8_t state) { return state == kKnown; }

// Something at this address is looked for from now on, or no more: a sampled block (blocks.h), or
// what a watch was set on (releases.h). Counts where the pool is known.
void look_for(uintptr_t address);
void look_no_more(uintptr_t address);
// Of a pool that was learned when something in it was looked for already.
void never_quiet(uintptr_t pool);

// The whole pools of [begin, end), an arena that has come or is about to go.
void add(uintptr_t begin, uintptr_t end);
void remove(uintptr_t begin, uintptr_t end);
void forget();

// Calls `visit` for each run of neighbouring pools.
void each_run(void (*visit)(uintptr_t begin, uintptr_t end, void* context), void* context);

}  // namespace tachograph::known_pools
