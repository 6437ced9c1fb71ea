// Address space that the program only reserved (PROT_NONE, MAP_NORESERVE), or mapped in large
// pieces, and what of it is in use.
//
// The allocators that libraries bring (mimalloc in pyarrow, jemalloc in polars and duckdb) reserve
// such space in large pieces and tell the kernel nothing when they use some of it: a page is there
// from its first touch on. So the pages are looked at (mincore). Those that came since the last
// look count as allocated and are charged to the Python code that looks; those that went, by a call
// that we stand in front of or without one, count as freed. A program that reserves nothing pays
// one comparison at each of these places.
#pragma once

#include "memory/counters.h"
#include "memory/page_looks.h"
#include "tachograph/api.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::reserves {

extern std::atomic<bool> g_any __attribute__((visibility("hidden")));
// Whether the program has ever reserved some.
inline bool any() { return __builtin_expect(g_any.load(std::memory_order_relaxed), 0); }

using page_looks::Owner;
using page_looks::Page;

// Mappings from this size on are seen as reserved: much of them may never be touched.
inline constexpr size_t kLarge = size_t{32} << 20;

// What the program does with its address space. `add` and `remove` say which of it is reserved.
void add(uintptr_t begin, uintptr_t end, const Owner& owner = {});
void remove(uintptr_t begin, uintptr_t end);
bool holds(uintptr_t begin, uintptr_t end, Owner* owner);
// The calling thread, where it stands; `caller` has called the hook.
Owner caller_of(const void* caller);
// Address space that is only reserved has no owner, but it is known who did it.
Owner reserved_by(const void* caller);
// Before pages move.
void look_at(uintptr_t begin, uintptr_t end);
// Before pages of it are given back; it stays reserved.
void give_back(uintptr_t begin, uintptr_t end);

// Writes a KEPT record for each stack that is charged with pages to come. False if that is not
// possible now.
bool keep_stacks();

// Looks by the thread that runs Python: at one of its allocations, and when the sampler's signal
// has found its stack.
void visit(heap::Counters* counters, const void* caller);
void sampled(const tg_walk& found, uint64_t pc);
// The process is recorded from now on.
void begin(int64_t now_ns);
// All that is there, if there is time: before a row that ends something.
void settle(bool charged);
// The recorder's own thread: finds growth that no thread of Python's has looked at.
void tick(int64_t now_ns);

void after_fork_in_child();
// The process is not recorded any more: none is known.
void forget();

}  // namespace tachograph::reserves
