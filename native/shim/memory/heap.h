// What the allocation hooks do on every call: count, and now and then look closer.
//
// Each thread has its own counters, which other threads may read. Nothing here locks, allocates or
// calls into other libraries. A thread takes the slow path when its byte budget is used up, about
// every 64 KiB.
#pragma once

#include "memory/blocks.h"
#include "memory/counters.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::heap {

// Undecided: not armed yet, all threads count in one place. On: by thread. Off: the program has no
// Python, is not to be recorded, or is recorded without memory.
enum class Mode : int { undecided, on, off };
extern std::atomic<Mode> g_mode __attribute__((visibility("hidden")));
// Whether what the calling thread does now is counted.
inline bool counting() {
    return !t_local.uncounted && g_mode.load(std::memory_order_acquire) != Mode::off;
}
// Whether the hooks only forward to the next definition: memory is off, and no block is ours. Then
// only libraries that were loaded later still call them, through their GOT (import_tables.h).
// but_releases: the hooks of free and the like still note what is released (releases.h).
enum class Passing : uint8_t { no, all, but_releases };
extern std::atomic<Passing> g_passing __attribute__((visibility("hidden")));
// Whether C++'s `operator new` belongs to a preloaded allocator and does not call malloc. It is not
// hooked: our definition would also interpose those of extension modules, and a block could be
// released to another allocator than its own.
extern bool g_operator_new_unseen __attribute__((visibility("hidden")));
// Whether blocks of ours are in the program's hands (libc_allocators.h), and must be released by
// us.
extern bool g_lent __attribute__((visibility("hidden")));
inline bool passing() {
    return __builtin_expect(g_passing.load(std::memory_order_relaxed) != Passing::no, 0);
}
inline bool releases_pass() {
    return __builtin_expect(g_passing.load(std::memory_order_relaxed) == Passing::all, 0);
}

// Bytes of malloc's blocks that are mappings of their own; negative where malloc is not glibc's.
extern std::atomic<int64_t> g_mapped_chunks __attribute__((visibility("hidden")));

// This program will most likely not be armed: counting ends. If it is armed all the same, its
// baseline is unknown.
void expect_nothing();
// The wrappers of the interpreter's allocators are installed. They depend on the counts of the
// hooks below them, so the hooks stay on until the recording ends.
void keep_counting();
// The recording has ended and the process goes on: the hooks are turned off, unless wrappers remain
// that need them. `begin_anew` resets the counts for another recording.
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

// The budget below which a thread takes the slow path. Python's own allocations take it at once
// while a sample waits for the end of a line; native code that calls malloc often does not.
template <int kDomain>
__attribute__((always_inline)) inline int64_t floor_of(const Counters* counters) {
    return kDomain == kCurrent ? 0 : counters->python_floor;
}

// The counting alone: `size` bytes were allocated, or are about to be given back. True: it is time
// for the slow way.
template <int kDomain>
__attribute__((always_inline)) inline bool count(Counters* counters, int64_t Flow::* direction,
                                                 int64_t Counters::* budget, size_t size) {
    const auto bytes = static_cast<int64_t>(size);
    add(&(counters->flows[kDomain == kCurrent ? t_local.domain : kDomain].*direction), bytes);
    counters->*budget -= bytes;
    return counters->*budget < floor_of<kDomain>(counters);
}

template <int kDomain>
__attribute__((always_inline)) inline bool count_taken(Counters* counters, size_t size) {
    return count<kDomain>(counters, &Flow::allocated, &Counters::allocation_budget, size);
}

template <int kDomain>
__attribute__((always_inline)) inline bool count_given(Counters* counters, size_t size) {
    return count<kDomain>(counters, &Flow::freed, &Counters::free_budget, size);
}

// A block of `size` bytes was allocated.
template <int kDomain = kCurrent>
__attribute__((always_inline)) inline void took(Local& local, const void* block, size_t size,
                                                size_t requested, const void* caller) {
    Counters* counters = local.counters;
    if (__builtin_expect(!counters, 0)) return took_outside(block, size, requested, caller);
    if (__builtin_expect(count_taken<kDomain>(counters, size), 0))
        took_slowly(counters, block, size, requested, caller);
}

// `size` bytes were, or are about to be, given back.
template <int kDomain = kCurrent>
__attribute__((always_inline)) inline void gave(Local& local, size_t size) {
    Counters* counters = local.counters;
    if (__builtin_expect(!counters, 0)) return gave_outside(size);
    if (__builtin_expect(count_given<kDomain>(counters, size), 0)) gave_slowly(counters);
}

// A block of `old` bytes goes on as one of `size` bytes. One event: no row of the counters lies
// between the two. `followed`: what blocks::claim said of it.
void moved_followed(Local& local, uint32_t followed, const void* from, size_t old,
                    const void* block, size_t size, size_t requested, const void* caller);
inline void count_moved(Local& local, size_t old, const void* block, size_t size, size_t requested,
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

inline void moved(Local& local, uint32_t followed, const void* from, size_t old, const void* block,
                  size_t size, size_t requested, const void* caller) {
    if (__builtin_expect(followed != kNone, 0))
        return moved_followed(local, followed, from, old, block, size, requested, caller);
    count_moved(local, old, block, size, requested, caller);
}

// To be called before a block is released: afterwards its address may be reused.
inline void gives(const void* block) {
    if (blocks::maybe_followed(block)) blocks::died(block);
}

// Writes the first row. The program holds `small` bytes in small blocks already (negative: unknown)
// and what was counted until now; without `known`, it may hold more.
void begin(int64_t small, bool known);

}  // namespace tachograph::heap
