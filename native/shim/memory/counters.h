// What each thread counts of memory, in memory of its own that others may read.
#pragma once

#include "arch/memory.h"
#include "memory/block.h"
#include "memory/points.h"
#include "spool/layout.h"
#include "tachograph/api.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::heap {

// What a thread counts. Written by the thread that has the slot, only ever growing: the next thread
// in the slot goes on from there, so the sum over all slots is the process's.
struct alignas(128) Counters {
    Flow flows[kDomains];
    Flow noted[kDomains];       // what of it is in the control file, or in a row
    int64_t noted_bytes;        // the sum of all that was noted last
    int64_t allocation_budget;  // bytes until the slow way
    int64_t allocation_refill;
    int64_t free_budget;
    int64_t python_floor;  // of both budgets, for Python's own allocations: 0, or more than any
    int64_t published;     // how much of the net is in the process's total
    Points points;         // of the blocks that are sampled
    int64_t mean;          // that the next point was drawn with
    int64_t copied;
    int64_t copied_recorded;
    int64_t copy_budget;  // bytes before the next point of the copies (points.h)
    int64_t copy_rest;    // from it to the end of its stretch
    int64_t copy_mean;    // that it was drawn with; 0 before the first copy
    uint64_t random;
    int64_t faults;         // minor page faults when it last looked at reserves
    int64_t forked_faults;  // in a forked child: those that are in rows
    uint32_t thread;
    uint32_t visits;  // times that it still looks at reserves when it allocates or releases
    uint32_t passes;  // times that malloc still asks whether it is where it looked last
    int32_t looked_instruction;  // where that was
    const void* looked_frame;
};

// The first and the last few blocks of a call: which of an interpreter's blocks came through malloc
// is told by them. tracemalloc has a dozen for itself, behind the one that it returns.
struct Recent {
    const void* first[4] = {};
    const void* last[4] = {};
    uint32_t count = 0;

    void add(const void* block) {
        const uint32_t there = count & ~kLook;
        (there < 4 ? first : last)[there % 4] = block;
        ++count;
    }
    bool none() const { return __builtin_expect(count == 0, 1); }
    // Whether there is this one and no other, and nothing else to be looked at.
    bool only(const void* block) const { return count == 1 && first[0] == block; }
    // Whether `block` is in one of them, behind a header of the interpreter's at most.
    bool hold(const void* block) const {
        const uint32_t there = count & ~kLook;
        for (uint32_t i = 0; i < there && i < 4; ++i)
            if (behind(block, first[i])) return true;
        for (uint32_t i = 4; i < there && i < 8; ++i)
            if (behind(block, last[i % 4])) return true;
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
    bool busy = false;                     // in the slow way
    bool ended = false;                    // its slot is given back
    bool uncounted = false;                // mappings of this moment are an allocator's own
    uint32_t outside = 0;                  // calls without counters
    uint32_t generation = 0;               // of the threads, when it got its counters (threads.h)
    Recent allocated;                      // what malloc and its relatives gave to this thread
    Recent freed;                          // what they took back
    void* waiting_arena = nullptr;         // of the interpreter's: about to be released
    int64_t moved_ns = 0;                  // when a followed block was freed that goes on elsewhere
    const blocks::Block* moved = nullptr;  // and what it was, if it is to be followed on
    const void* claimed = nullptr;         // a followed block that is about to be reallocated
    uint32_t claim = 0;                    // what blocks::claim said of it

    // The hook of realloc takes over what a wrapper of the interpreter's allocators has claimed.
    bool take_claim(const void* block, uint32_t* taken) {
        if (__builtin_expect(claimed != block, 1)) return false;
        claimed = nullptr;
        *taken = claim;
        return true;
    }
};
// initial-exec: no allocation on first use; zero-initialised, without a destructor.
extern __thread Local t_local __attribute__((tls_model("initial-exec"), visibility("hidden")));

// One instruction: whole for those who read it meanwhile, and for a signal handler on this thread.
inline void add(int64_t* sum, int64_t more) { arch::add_in_place(sum, more); }

}  // namespace tachograph::heap
