// What the allocation hooks do on every call: count, and now and then look closer.
//
// Each thread counts for itself, in memory that others may read; nothing here locks, allocates or
// calls out. A thread that runs out of its budget of bytes goes the slow way, some 64 KiB apart.
#pragma once

#include "memory/blocks.h"
#include "memory/counters.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::heap {

// Until the program is armed all is counted in one place; then by thread. Off: the program has no
// Python in it, is not to be recorded, or is recorded without memory.
enum class Mode : int { undecided, on, off };
extern std::atomic<Mode> g_mode __attribute__((visibility("hidden")));
// The hooks do nothing but call what is behind them: off, and all blocks are of what is behind
// them. Only what was loaded since then still comes here (import_tables.h). Or those of releases
// go on, as they tell what is released (releases.h): without memory they count nothing.
enum class Passing : uint8_t { no, all, but_releases };
extern std::atomic<Passing> g_passing __attribute__((visibility("hidden")));
// Whether `operator new` of C++ belongs to a preloaded allocator and does not go through malloc. It
// is not hooked: a definition of ours would also interpose those that extension modules bring for
// themselves, and blocks of one allocator would be given back to another.
extern bool g_operator_new_unseen __attribute__((visibility("hidden")));
// Blocks were lent to the program (libc_allocators.h): they come back to the hooks.
extern bool g_lent __attribute__((visibility("hidden")));
inline bool passing() {
    return __builtin_expect(g_passing.load(std::memory_order_relaxed) != Passing::no, 0);
}
inline bool releases_pass() {
    return __builtin_expect(g_passing.load(std::memory_order_relaxed) == Passing::all, 0);
}

// This program will not be armed, as far as is known now. It may be all the same, and then knows
// less: its baseline is unknown.
void expect_nothing();
// The wrappers of the interpreter's allocators are in place, and stay: they ask the hooks below
// them whether a block was their own. From now on the hooks are not off before the recording ends.
void keep_counting();
// Unless the wrappers are gone, or do nothing but call what is behind them. The process goes on
// without being recorded; where it is recorded again, from the beginning.
void end_counting();
void begin_anew();
// Whether all was counted from the program's start.
bool complete();

void took_slowly(Counters* counters, const void* block, size_t size, size_t requested,
                 const void* caller);
void gave_slowly(Counters* counters);
void took_outside(const void* block, size_t size, size_t requested, const void* caller);
void gave_outside(size_t size);

inline constexpr int kCurrent = -1;  // the domain that the thread is in

// Below which budget a thread goes the slow way. Python's own allocations do so at once where the
// end of a line is waited for: native code that calls malloc all the time need not.
template <int kDomain>
__attribute__((always_inline)) inline int64_t floor_of(const Counters* counters) {
    return kDomain == kCurrent ? 0 : counters->python_floor;
}

// A block of `size` bytes was allocated.
template <int kDomain = kCurrent>
__attribute__((always_inline)) inline void took(Local& local, const void* block, size_t size,
                                                size_t requested, const void* caller) {
    Counters* counters = local.counters;
    if (__builtin_expect(!counters, 0)) return took_outside(block, size, requested, caller);
    const auto bytes = static_cast<int64_t>(size);
    add(&counters->flows[kDomain == kCurrent ? local.domain : kDomain].allocated, bytes);
    counters->allocation_budget -= bytes;
    if (__builtin_expect(counters->allocation_budget < floor_of<kDomain>(counters), 0))
        took_slowly(counters, block, size, requested, caller);
}

// `size` bytes were, or are about to be, given back.
template <int kDomain = kCurrent>
__attribute__((always_inline)) inline void gave(Local& local, size_t size) {
    Counters* counters = local.counters;
    if (__builtin_expect(!counters, 0)) return gave_outside(size);
    const auto bytes = static_cast<int64_t>(size);
    add(&counters->flows[kDomain == kCurrent ? local.domain : kDomain].freed, bytes);
    counters->free_budget -= bytes;
    if (__builtin_expect(counters->free_budget < floor_of<kDomain>(counters), 0))
        gave_slowly(counters);
}

// A block of `old` bytes goes on as one of `size` bytes. One event: no row of the counters lies
// between the two.
inline void moved(Local& local, size_t old, const void* block, size_t size, size_t requested,
                  const void* caller) {
    Counters* counters = local.counters;
    if (__builtin_expect(!counters, 0)) {
        gave_outside(old);
        return took_outside(block, size, requested, caller);
    }
    const auto bytes = static_cast<int64_t>(old);
    add(&counters->flows[local.domain].freed, bytes);
    counters->free_budget -= bytes;
    took(local, block, size, requested, caller);
    if (__builtin_expect(counters->free_budget < 0, 0)) gave_slowly(counters);
}

// To be called before a block is given back: afterwards its address may be another's.
inline void gives(const void* block) {
    if (blocks::maybe_followed(block)) blocks::died(block);
}

// The first row; what is held already is `small` bytes in small blocks (negative: not known), and
// what was counted until now. Not `known`: more may be. All else is done through the table of
// sources.
void begin(int64_t small, bool known);

}  // namespace tachograph::heap
