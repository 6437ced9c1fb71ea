// Who wants to know when memory at some addresses is given back: what was there is gone, and what
// comes there next is another thing.
//
// The hooks tell of each release, before its memory can be another's. While no address is wanted,
// that costs them one look at a counter.
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

extern std::atomic<uint32_t> g_wanted __attribute__((visibility("hidden")));
void tell_slowly(uint64_t address, uint64_t size);

inline void tell(const void* block, size_t size) {
    if (__builtin_expect(g_wanted.load(std::memory_order_relaxed) != 0, 0))
        tell_slowly(reinterpret_cast<uint64_t>(block), size);
}

}  // namespace tachograph::releases
