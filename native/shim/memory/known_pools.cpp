#include "memory/known_pools.h"

#include "base/large_data.h"
#include "spool/own_memory.h"

namespace tachograph::known_pools {

constinit TG_LARGE_ZEROS std::atomic<Table*> g_tables[kTables] = {};

namespace {

// Where there is no memory for one, its pools stay unknown.
Table* table_of(uintptr_t address, bool make) {
    if (address / kSpan >= kTables) return nullptr;
    std::atomic<Table*>& place = g_tables[address / kSpan];
    Table* table = place.load(std::memory_order_acquire);
    if (table || !make || !own_memory::map(&table, sizeof(Table))) return table;
    Table* first = nullptr;
    // Of two threads one has mapped its own in vain: a few untouched pages.
    return place.compare_exchange_strong(first, table) ? table : first;
}

template <typename F>
void each(uintptr_t begin, uintptr_t end, bool make, F change) {
    for (uintptr_t pool = (begin + kPool - 1) & ~(kPool - 1); pool + kPool <= end; pool += kPool) {
        const uintptr_t bit = pool % kSpan / kPool;
        if (Table* table = table_of(pool, make))
            change(&table->pools[bit / 8], static_cast<uint8_t>(1u << bit % 8));
    }
}

}  // namespace

void add(uintptr_t begin, uintptr_t end) {
    each(begin, end, true, [](std::atomic<uint8_t>* pools, uint8_t bit) {
        pools->fetch_or(bit, std::memory_order_relaxed);
    });
}

void remove(uintptr_t begin, uintptr_t end) {
    each(begin, end, false, [](std::atomic<uint8_t>* pools, uint8_t bit) {
        pools->fetch_and(static_cast<uint8_t>(~bit), std::memory_order_relaxed);
    });
}

void forget() {
    for (const auto& place : g_tables)
        if (Table* table = place.load(std::memory_order_acquire))
            kernel::clear(table, sizeof(Table));
}

void each_run(void (*visit)(uintptr_t begin, uintptr_t end, void* context), void* context) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    for (uintptr_t index = 0; index < kTables; ++index) {
        const Table* table = g_tables[index].load(std::memory_order_acquire);
        if (!table) continue;
        for (uintptr_t byte = 0; byte < sizeof table->pools; ++byte) {
            uint8_t bits = table->pools[byte].load(std::memory_order_relaxed);
            for (; bits != 0; bits &= static_cast<uint8_t>(bits - 1)) {
                const auto bit = static_cast<uintptr_t>(__builtin_ctz(bits));
                const uintptr_t pool = index * kSpan + (byte * 8 + bit) * kPool;
                if (pool != end) {
                    if (begin < end) visit(begin, end, context);
                    begin = pool;
                }
                end = pool + kPool;
            }
        }
    }
    if (begin < end) visit(begin, end, context);
}

}  // namespace tachograph::known_pools
