// What the recorder itself takes up in the program's memory.
#pragma once

#include "base/kernel.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::own_memory {

// A table of ours that is never given back. `used`, if not null, says how many of its entries, of
// `entry` bytes, were touched: those behind them take no room, and are not asked for.
void note(const void* table, size_t bytes, const std::atomic<uint32_t>* used = nullptr,
          size_t entry = 0);

template <typename T>
bool map(T** to, size_t bytes) {
    if (!kernel::map(to, bytes)) return false;
    note(*to, bytes);
    return true;
}

template <typename T>
bool map_for_one_process(T** to, size_t bytes) {
    if (!kernel::map_for_one_process(to, bytes)) return false;
    note(*to, bytes);
    return true;
}

// The first piece of [begin, end) that is in no table of ours; an empty one at `end` if there is
// none.
struct Range {
    uint64_t begin;
    uint64_t end;
};
Range first_outside(Range range);

// Looks at what is in memory now, and keeps the most in the control file.
void look();

}  // namespace tachograph::own_memory
