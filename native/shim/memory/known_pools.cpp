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

std::atomic<uint8_t>* state_of(uintptr_t address, bool make) {
    Table* table = table_of(address, make);
    return table ? &table->pools[address % kSpan / kPool] : nullptr;
}

constexpr uint8_t kPlaces = static_cast<uint8_t>(~kKnown);

// Where no pool is known nothing is counted, so that what is looked for elsewhere takes no memory.
// A count that has once been as high as it can be stays: then it is not known when it is 0 again.
void count_place(uintptr_t address, bool more) {
    std::atomic<uint8_t>* state = state_of(address, false);
    if (!state) return;
    uint8_t seen = state->load(std::memory_order_relaxed);
    uint8_t changed = 0;
    do {
        const uint8_t places = seen & kPlaces;
        if (!known(seen) || places == kPlaces || (!more && places == 0)) return;
        changed = static_cast<uint8_t>(more ? seen + kPlace : seen - kPlace);
    } while (!state->compare_exchange_weak(seen, changed, std::memory_order_relaxed));
}

template <typename F>
void each(uintptr_t begin, uintptr_t end, bool make, F change) {
    for (uintptr_t pool = (begin + kPool - 1) & ~(kPool - 1); pool + kPool <= end; pool += kPool)
        if (std::atomic<uint8_t>* state = state_of(pool, make)) change(state);
}

}  // namespace

void look_for(uintptr_t address) { count_place(address, true); }

void look_no_more(uintptr_t address) { count_place(address, false); }

void never_quiet(uintptr_t pool) {
    if (std::atomic<uint8_t>* state = state_of(pool, false))
        state->fetch_or(kPlaces, std::memory_order_relaxed);
}

void add(uintptr_t begin, uintptr_t end) {
    each(begin, end, true,
         [](std::atomic<uint8_t>* state) { state->fetch_or(kKnown, std::memory_order_relaxed); });
}

void remove(uintptr_t begin, uintptr_t end) {
    each(begin, end, false, [](std::atomic<uint8_t>* state) {
        state->fetch_and(static_cast<uint8_t>(~kKnown), std::memory_order_relaxed);
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
        for (uintptr_t there = 0; there < kSpan / kPool; ++there) {
            uint64_t eight;  // most of a table is zeros
            __builtin_memcpy(&eight, &table->pools[there & ~uintptr_t{7}], sizeof eight);
            if (eight == 0) {
                there |= 7;
                continue;
            }
            const uintptr_t pool = index * kSpan + there * kPool;
            if (!known(state(pool))) continue;
            if (pool != end) {
                if (begin < end) visit(begin, end, context);
                begin = pool;
            }
            end = pool + kPool;
        }
    }
    if (begin < end) visit(begin, end, context);
}

}  // namespace tachograph::known_pools
