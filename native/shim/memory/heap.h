// What the allocation hooks do on every call: count, and now and then look closer.
//
// Each thread counts for itself, in memory that others may read; nothing here locks, allocates or
// calls out. A thread that runs out of its budget of bytes goes the slow way, some 64 KiB apart.
#pragma once

#include "memory/blocks.h"
#include "memory/points.h"
#include "spool/layout.h"
#include "tachograph/api.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::heap {

// A thread's books. Written by the thread that has the slot, only ever growing: whoever takes over
// the slot goes on from there, so the sum over all slots is the process's.
struct alignas(128) Counters {
    Flow flows[kDomains];
    int64_t allocation_budget;  // bytes until the slow way
    int64_t allocation_refill;
    int64_t free_budget;
    int64_t published;  // how much of the net is in the process's total
    Points points;      // of the blocks that are sampled
    int64_t mean;       // that the next point was drawn with
    int64_t copied;
    int64_t copied_recorded;
    int64_t copy_budget;
    int64_t copy_mean;
    uint64_t random;
    uint32_t thread;
};

// The first and the last few blocks of a call: which of an interpreter's blocks came through malloc
// is told by them. tracemalloc has a dozen for itself, behind the one that it returns.
struct Recent {
    const void* first[4] = {};
    const void* last[4] = {};
    uint32_t count = 0;

    void add(const void* block) {
        if (const uint32_t there = count & ~kLook; there < 4) first[there] = block;
        last[count++ % 4] = block;
    }
    bool none() const { return __builtin_expect(count == 0, 1); }
    // Whether `block` is in one of them, behind a header of the interpreter's at most.
    bool hold(const void* block) const {
        const uint32_t there = count & ~kLook;
        for (uint32_t i = 0; i < there && i < 4; ++i)
            if (behind(block, first[i]) || behind(block, last[i])) return true;
        return false;
    }
    static bool behind(const void* block, const void* start) {
        return reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(start) <= kHeader;
    }
    static constexpr uintptr_t kHeader = 64;
    // In `count`: something else is there to be looked at.
    static constexpr uint32_t kLook = 1u << 31;
};

struct Local {
    Counters* counters = nullptr;
    uint8_t domain = TG_DOMAIN_NATIVE;
    bool busy = false;              // in the slow way
    bool ended = false;             // its slot is given back
    bool uncounted = false;         // mappings of this moment are an allocator's own
    uint32_t outside = 0;           // calls without counters
    Recent allocated;               // what malloc and its kin gave to this thread
    Recent freed;                   // what they took back
    void* waiting_arena = nullptr;  // of the interpreter's: about to be released
    int64_t moved_ns = 0;           // when a followed block was freed that goes on elsewhere
};
// initial-exec: no allocation on first use; zero-initialised, without a destructor.
extern __thread Local t_local __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Until the program is armed all is counted in one place; then, or never, by thread.
enum class Mode : int { undecided, on, off };
extern std::atomic<Mode> g_mode __attribute__((visibility("hidden")));

void took_slowly(Counters* counters, const void* block, size_t size, size_t requested,
                 const void* caller);
void gave_slowly(Counters* counters);
void took_outside(const void* block, size_t size, size_t requested, const void* caller);
void gave_outside(size_t size);

// One instruction: whole for those who read it meanwhile, and for a signal handler on this thread.
inline void add(int64_t* sum, int64_t more) {
    __asm__ volatile("addq %1, %0" : "+m"(*sum) : "er"(more) : "cc");
}

inline constexpr int kCurrent = -1;  // the domain that the thread is in

// A block of `size` bytes was allocated.
template <int kDomain = kCurrent>
__attribute__((always_inline)) inline void took(Local& local, const void* block, size_t size,
                                                size_t requested, const void* caller) {
    Counters* counters = local.counters;
    if (__builtin_expect(!counters, 0)) return took_outside(block, size, requested, caller);
    const auto bytes = static_cast<int64_t>(size);
    add(&counters->flows[kDomain == kCurrent ? local.domain : kDomain].allocated, bytes);
    counters->allocation_budget -= bytes;
    if (__builtin_expect(counters->allocation_budget < 0, 0))
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
    if (__builtin_expect(counters->free_budget < 0, 0)) gave_slowly(counters);
}

// To be called before a block is given back: afterwards its address may be another's.
inline void gives(const void* block) {
    if (blocks::maybe_followed(block)) blocks::died(block);
}

// Arming, threads, ending.
bool open(uint64_t threshold);
void never();  // nothing of memory is recorded
// The thread's books are those of slot `index`; `thread` is its id in the recording.
void attach(uint32_t index, uint32_t thread);
void detach();
// The first row; what is held already is `small` bytes in small blocks (negative: not known), and
// what was counted until now.
void begin(int64_t small);
void tick(int64_t now_ns);  // the recorder's own thread
// Paused or not: a row between what is recorded and what is not.
void pause(bool yes);
// In a forked child: before the threads are forgotten, and when it has a spool.
void inherit();
void begin_again();
void exiting();  // a row where the program's own part ends
void finish();
// What no row has told yet, before the process is replaced by another program.
void tell();

}  // namespace tachograph::heap
