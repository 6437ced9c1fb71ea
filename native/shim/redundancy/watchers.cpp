#include "redundancy/watchers.h"

#include "base/kernel.h"
#include "base/large_data.h"
#include "memory/releases.h"
#include "redundancy/block_content.h"
#include "spool/spool.h"

#include <cerrno>

namespace tachograph::redundancy::watchers {
namespace {

constexpr uint64_t kMark = 0x5441434800000000;  // "TACH"
constexpr uint64_t kMarked = 0xFFFFFFFF00000000;
constexpr pid_t kAbandoned = -1;
constexpr uint32_t kPlaces = kMostWatches + 1;

struct Table {
    Watcher watchers[kMostWatchers];
    std::atomic<uint32_t> high_water{0};
    // Threads that got none: they are not tried, and counted, at each sample.
    std::atomic<bool> refused[threads::kMostThreads] = {};
    std::atomic<bool> any_refused{false};
};
constinit TG_LARGE_DATA Table g;

uint32_t high_water() { return g.high_water.load(std::memory_order_acquire); }

uint64_t data_of(const Watcher* watcher, uint32_t place) {
    return kMark | static_cast<uint64_t>(watcher - g.watchers) * kPlaces | place;
}

// One at least for a watch, and one for the frame's progress: without that it is not known whether
// the two accesses are of one call.
bool open(Watcher* watcher) {
    if (watcher->progress.open(data_of(watcher, kMostWatches)) != 0) return false;
    watcher->watches_open = 0;
    for (uint32_t place = 0; place < kMostWatches; ++place) {
        if (watcher->watches[place].watchpoint.open(data_of(watcher, place)) != 0) break;
        ++watcher->watches_open;
    }
    if (watcher->watches_open > 0) return true;
    watcher->progress.close();
    return false;
}

void close(Watcher* watcher) {
    for (Watch& watch : watcher->watches) watch.watchpoint.close();
    watcher->progress.close();
}

Watcher* take(threads::Thread* thread, pid_t tid) {
    for (uint32_t index = 0; index < kMostWatchers; ++index) {
        Watcher* watcher = &g.watchers[index];
        pid_t free = 0;
        pid_t abandoned = kAbandoned;
        if (watcher->tid.compare_exchange_strong(abandoned, tid))
            close(watcher);
        else if (!watcher->tid.compare_exchange_strong(free, tid))
            continue;
        uint32_t high = high_water();
        while (high <= index && !g.high_water.compare_exchange_weak(high, index + 1)) {
        }
        watcher->thread = thread;
        watcher->frame = 0;
        watcher->busy.store(false);
        watcher->account = {};
        watcher->random = static_cast<uint64_t>(kernel::monotonic_ns()) ^ static_cast<uint64_t>(tid)
                                                                              << 32;
        if (open(watcher)) return watcher;
        watcher->tid.store(0);
        return nullptr;
    }
    return nullptr;
}

// A later block in the place of one that was given back. Temporary results of one line often take
// turns in a place, so several are looked at.
void compare(Followed* followed, uint64_t size) {
    constexpr uint32_t kMostLooks = 12;
    Released& before = followed->released;
    ++before.looks;
    before.again =
        size == before.size && block_content::of(before.address, size).hash == before.content.hash;
    if (before.again || before.looks >= kMostLooks) return redundancy::end(followed);
    followed->state.store(State::armed, std::memory_order_release);
}

void release(Watcher* watcher, Watch* watch, const Released& released) {
    if (released.content.hash == 0) return redundancy::end_released(watch, released);
    Followed& place =
        watcher->followed[watcher->next_followed.fetch_add(1, std::memory_order_relaxed) %
                          kMostFollowed];
    if (claim(&place)) redundancy::end(&place);
    claim(&place, State::free) ? follow(watch, released, &place)
                               : redundancy::end_released(watch, released);
}

}  // namespace

Watcher* known() {
    const pid_t tid = kernel::gettid();
    for (uint32_t index = 0; index < high_water(); ++index)
        if (g.watchers[index].tid.load(std::memory_order_acquire) == tid) return &g.watchers[index];
    return nullptr;
}

Watcher* own(threads::Thread* thread) {
    if (Watcher* watcher = known()) return watcher;
    std::atomic<bool>& refused = g.refused[threads::slot_of(thread)];
    if (refused.load(std::memory_order_relaxed)) return nullptr;
    if (Watcher* watcher = take(thread, kernel::gettid())) return watcher;
    refused.store(true, std::memory_order_relaxed);
    g.any_refused.store(true, std::memory_order_relaxed);
    spool::count(Loss::watchpoints_refused);
    return nullptr;
}

bool is_ours(uint64_t data) { return (data & kMarked) == kMark; }

bool of_trap(uint64_t data, Watcher** watcher, uint32_t* watch) {
    const uint64_t number = data & ~kMarked;
    if (number >= kMostWatchers * kPlaces) return false;
    *watcher = &g.watchers[number / kPlaces];
    *watch = static_cast<uint32_t>(number % kPlaces);
    if ((*watcher)->tid.load(std::memory_order_acquire) == kernel::gettid()) return true;
    Watchpoint* trapped =
        *watch == kMostWatches ? &(*watcher)->progress : &(*watcher)->watches[*watch].watchpoint;
    trapped->disarm();
    return false;
}

bool end_all(Watcher* watcher, Outcome outcome) {
    bool all = true;
    for (Watch& watch : watcher->watches) {
        if (claim(&watch)) end(&watch, outcome);
        if (watch.state.load(std::memory_order_acquire) != State::free) all = false;
    }
    for (Followed& followed : watcher->followed) {
        if (claim(&followed)) redundancy::end(&followed);
        if (followed.state.load(std::memory_order_acquire) != State::free) all = false;
    }
    return all;
}

bool end_all(Outcome outcome) {
    bool all = true;
    for (uint32_t index = 0; index < high_water(); ++index)
        if (!end_all(&g.watchers[index], outcome)) all = false;
    return all;
}

void end_released(uint64_t address, uint64_t size) {
    for (uint32_t index = 0; index < high_water(); ++index) {
        Watcher& watcher = g.watchers[index];
        for (Followed& followed : watcher.followed)
            if (followed.state.load(std::memory_order_acquire) == State::armed &&
                followed.released.address == address && claim(&followed))
                compare(&followed, size);
        for (Watch& watch : watcher.watches)
            if (watch.state.load(std::memory_order_acquire) == State::armed &&
                watch.address < address + size && address < watch.address + watch.size &&
                claim(&watch))
                release(&watcher, &watch, {address, size, block_content::of(address, size)});
    }
}

void leave() {
    Watcher* watcher = known();
    if (!watcher) return;
    end_all(watcher, Outcome::cut);
    close(watcher);
    watcher->tid.store(0, std::memory_order_release);
}

void abandon(const threads::Thread* thread) {
    const pid_t own = kernel::gettid();
    for (uint32_t index = 0; index < high_water(); ++index) {
        Watcher* watcher = &g.watchers[index];
        pid_t tid = watcher->tid.load(std::memory_order_acquire);
        if (tid <= 0 || watcher->thread != thread) continue;
        if (tid == own) return leave();
        end_all(watcher, Outcome::cut);
        watcher->tid.compare_exchange_strong(tid, kAbandoned);
    }
}

void close_all() {
    for (uint32_t index = 0; index < high_water(); ++index) close(&g.watchers[index]);
}

void forget() {
    for (uint32_t index = 0; index < high_water(); ++index) {
        Watcher* watcher = &g.watchers[index];
        close(watcher);
        for (Watch& watch : watcher->watches) watch.state.store(State::free);
        for (Followed& followed : watcher->followed) followed.state.store(State::free);
        watcher->tid.store(0);
    }
    if (g.any_refused.exchange(false, std::memory_order_relaxed))
        for (auto& refused : g.refused) refused.store(false, std::memory_order_relaxed);
    releases::forget();
}

}  // namespace tachograph::redundancy::watchers
