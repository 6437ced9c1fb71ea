#include "memory/releases.h"

#include "base/large_data.h"
#include "memory/known_pools.h"

namespace tachograph::releases {

std::atomic<uint32_t> g_wanted{0};
TG_LARGE_ZEROS std::atomic<uint8_t> g_pages[kPlaces] = {};

namespace {

constinit std::atomic<Listener> g_listener{nullptr};

std::atomic<uint8_t>& place_of(uint64_t address) { return g_pages[address / kPage % kPlaces]; }

}  // namespace

void listen(Listener listener) { g_listener.store(listener, std::memory_order_release); }

void want(uint64_t address) {
    known_pools::look_for(address);
    place_of(address).fetch_add(1, std::memory_order_relaxed);
    place_of(address - kPage).fetch_add(1, std::memory_order_relaxed);
    g_wanted.fetch_add(1, std::memory_order_release);
}

void drop(uint64_t address) {
    g_wanted.fetch_sub(1, std::memory_order_release);
    place_of(address).fetch_sub(1, std::memory_order_relaxed);
    place_of(address - kPage).fetch_sub(1, std::memory_order_relaxed);
    known_pools::look_no_more(address);
}

void forget() {
    // One that a thread was about to want, as the process forked, makes a release slower, no more.
    if (g_wanted.exchange(0) == 0) return;
    for (auto& page : g_pages) page.store(0, std::memory_order_relaxed);
}

void tell_slowly(uint64_t address, uint64_t size) {
    if (g_wanted.load(std::memory_order_acquire) == 0) return;  // what is wanted has its place
    if (size <= kPage && place_of(address).load(std::memory_order_relaxed) == 0) return;
    if (const Listener listener = g_listener.load(std::memory_order_acquire))
        listener(address, size);
}

}  // namespace tachograph::releases
