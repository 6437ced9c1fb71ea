#include "memory/releases.h"

namespace tachograph::releases {

std::atomic<uint32_t> g_wanted{0};

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kPlaces = 4096;

struct State {
    std::atomic<Listener> listener{nullptr};
    // How many wanted addresses lie in a page of this place, or in the page behind it: a block of
    // no more than a page that holds one begins in one of the two.
    std::atomic<uint8_t> pages[kPlaces] = {};
};
constinit State g;

std::atomic<uint8_t>& place_of(uint64_t address) { return g.pages[address / kPage % kPlaces]; }

}  // namespace

void listen(Listener listener) { g.listener.store(listener, std::memory_order_release); }

void want(uint64_t address) {
    place_of(address).fetch_add(1, std::memory_order_relaxed);
    place_of(address - kPage).fetch_add(1, std::memory_order_relaxed);
    g_wanted.fetch_add(1, std::memory_order_release);
}

void drop(uint64_t address) {
    g_wanted.fetch_sub(1, std::memory_order_release);
    place_of(address).fetch_sub(1, std::memory_order_relaxed);
    place_of(address - kPage).fetch_sub(1, std::memory_order_relaxed);
}

void forget() {
    g_wanted.store(0);
    for (auto& page : g.pages) page.store(0, std::memory_order_relaxed);
}

void tell_slowly(uint64_t address, uint64_t size) {
    if (size <= kPage && place_of(address).load(std::memory_order_relaxed) == 0) return;
    if (const Listener listener = g.listener.load(std::memory_order_acquire))
        listener(address, size);
}

}  // namespace tachograph::releases
