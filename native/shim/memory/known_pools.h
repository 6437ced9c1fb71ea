// The pools of the interpreter's small blocks, as far as they are known: only then may the head of
// a pool be read for the size of a block, which may be another allocator's.
//
// One bit for each 16 KiB of address space, in tables that are made when an arena lies in them.
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

struct Table {
    std::atomic<uint8_t> pools[kSpan / kPool / 8];
};
extern std::atomic<Table*> g_tables[kTables] __attribute__((visibility("hidden")));

// `pool` begins one.
inline bool known(uintptr_t pool) {
    if (__builtin_expect(pool / kSpan >= kTables, 0)) return false;
    const Table* table = g_tables[pool / kSpan].load(std::memory_order_relaxed);
    const uintptr_t bit = pool % kSpan / kPool;
    return table && (table->pools[bit / 8].load(std::memory_order_relaxed) >> bit % 8 & 1) != 0;
}

// The whole pools of [begin, end), an arena that has come or is about to go.
void add(uintptr_t begin, uintptr_t end);
void remove(uintptr_t begin, uintptr_t end);
void forget();

// Calls `visit` for each run of neighbouring pools.
void each_run(void (*visit)(uintptr_t begin, uintptr_t end, void* context), void* context);

}  // namespace tachograph::known_pools
