// Who wants to know when memory at some addresses is given back: what was there is gone, and what
// comes there next is another thing.
//
// The hooks tell of each release, before its memory can be another's. While no address is wanted,
// that costs them one look at a counter. They do so where memory is not recorded as well: then they
// do nothing else (hooks_memory.cpp, domains.cpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::releases {

// [address, address + size) is given back. Called from the hooks, in any thread.
using Listener = void (*)(uint64_t address, uint64_t size);
void listen(Listener listener);

// From now on the release of what holds this address is told, by as many `want` as `drop`. Both are
// safe in signal handlers.
void want(uint64_t address);
void drop(uint64_t address);
// In a forked child: none is wanted.
void forget();

inline constexpr uint64_t kPage = 4096;  // to tell places apart, whatever the machine has
inline constexpr uint32_t kPlaces = 4096;

extern std::atomic<uint32_t> g_wanted __attribute__((visibility("hidden")));
// How many wanted addresses lie in a page of this place, or in the page behind it: a block of no
// more than a page that holds one begins in one of the two.
extern std::atomic<uint8_t> g_pages[kPlaces] __attribute__((visibility("hidden")));
void tell_slowly(uint64_t address, uint64_t size);

// Whether any release is to be told.
inline bool any() { return __builtin_expect(g_wanted.load(std::memory_order_relaxed) != 0, 0); }

// Whether the release of what begins here is to be told, if it is no larger than a page.
inline bool near(const void* block) {
    const uint64_t page = reinterpret_cast<uint64_t>(block) / kPage;
    return __builtin_expect(g_pages[page % kPlaces].load(std::memory_order_relaxed) != 0, 0);
}

inline void tell(const void* block, size_t size) {
    if (any()) tell_slowly(reinterpret_cast<uint64_t>(block), size);
}

}  // namespace tachograph::releases
