#include "blocks.h"

#include "kernel.h"
#include "layout.h"
#include "recorder.h"
#include "spool.h"
#include "threads.h"

namespace tachograph::blocks {

std::atomic<uint8_t> g_pages[1u << kPageBits];
std::atomic<uint8_t> g_filter[1u << kFilterBits];

namespace {

constexpr uint32_t kWays = 16;
constexpr uint32_t kSets = 1u << (kFilterBits - 4);
constexpr uint32_t kPlaces = kSets * kWays;
constexpr uint8_t kSaturated = 255;
constexpr int64_t kCertain = 16;  // means: all but 1 in 9 million such blocks
constexpr int kTries = 10'000;
constexpr int64_t kYoungNs = 1'000'000'000;
constexpr uintptr_t kTaken = 1;  // a place that is being filled or emptied: no block's address

enum : uint8_t { kEmpty, kYoung, kWriting, kWritten, kDead };

struct Entry {
    Block what;
    uint32_t id;
    std::atomic<uint8_t> state;
};

struct State {
    std::atomic<uintptr_t>* addresses = nullptr;
    Entry* entries = nullptr;
    std::atomic<uint32_t> next_id{0};
    std::atomic<uint32_t> alive{0};
    std::atomic<uint32_t> young_written{0};
    std::atomic_flag writing = ATOMIC_FLAG_INIT;
};
constinit State g;

uint32_t own_thread() {
    const threads::Thread* own = threads::own();
    return own ? own->id.load(std::memory_order_relaxed) : kNone;
}

uint32_t next_id() { return g.next_id.fetch_add(1, std::memory_order_relaxed); }

bool write_block(uint32_t id, const Block& what, int64_t mean, bool followed) {
    const spool::Ticket ticket = spool::reserve(Kind::block, sizeof(BlockRecord));
    if (!ticket.record) return false;
    auto* record = reinterpret_cast<BlockRecord*>(ticket.record);
    record->time_ns = what.time_ns;
    record->size = what.size;
    record->requested = what.requested;
    record->mean = mean;
    record->pc = what.pc;
    record->block = id;
    record->thread = what.thread;
    record->stack = what.stack;
    record->domain = what.domain;
    record->stack_state = what.stack_state;
    record->followed = followed ? 1 : 0;
    spool::commit(ticket);
    return true;
}

void write_freed(uint32_t id, int64_t time_ns) {
    const spool::Ticket ticket = spool::reserve(Kind::freed, sizeof(FreedRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<FreedRecord*>(ticket.record);
    record->time_ns = time_ns;
    record->block = id;
    record->thread = own_thread();
    spool::commit(ticket);
}

// A count that has once been saturated stays: then nobody knows when it is 0 again.
void change(std::atomic<uint8_t>& count, int by) {
    uint8_t seen = count.load(std::memory_order_relaxed);
    while (seen != kSaturated && !count.compare_exchange_weak(seen, static_cast<uint8_t>(seen + by),
                                                              std::memory_order_relaxed)) {
    }
}

void forget(const void* block) {
    change(g_pages[page_of(block)], -1);
    change(g_filter[hash_of(block)], -1);
}

void remember(const void* block) {
    change(g_filter[hash_of(block)], 1);
    change(g_pages[page_of(block)], 1);
}

void release(uint32_t place) {
    g.entries[place].state.store(kEmpty, std::memory_order_relaxed);
    g.alive.fetch_sub(1, std::memory_order_relaxed);
    g.addresses[place].store(0, std::memory_order_release);
}

}  // namespace

bool open() {
    return (g.entries || kernel::map(&g.entries, sizeof(Entry) * kPlaces)) &&
           (g.addresses || kernel::map(&g.addresses, sizeof(uintptr_t) * kPlaces));
}

void follow(const void* block, const Block& what) {
    const uint32_t first = (hash_of(block) >> 4) * kWays;
    for (uint32_t place = first; place < first + kWays; ++place) {
        uintptr_t free = 0;
        if (g.addresses[place].load(std::memory_order_relaxed) != 0 ||
            !g.addresses[place].compare_exchange_strong(free, kTaken, std::memory_order_acq_rel))
            continue;
        Entry& entry = g.entries[place];
        entry.what = what;
        uint8_t state = kYoung;
        // Certain to be in both samples: written now, so that it is there after a kill as well.
        if (what.size >= kCertain * what.coarse_mean && what.coarse_mean > 0) {
            entry.id = next_id();
            if (write_block(entry.id, what, what.mean, true)) state = kWritten;
        }
        entry.state.store(state, std::memory_order_release);
        g.alive.fetch_add(1, std::memory_order_relaxed);
        g.addresses[place].store(reinterpret_cast<uintptr_t>(block), std::memory_order_release);
        remember(block);
        return;
    }
    spool::count(Loss::blocks_unfollowed);
    write_block(next_id(), what, what.mean, false);
}

uint32_t claim(const void* block) {
    const auto address = reinterpret_cast<uintptr_t>(block);
    const uint32_t first = (hash_of(block) >> 4) * kWays;
    for (uint32_t place = first; place < first + kWays; ++place) {
        uintptr_t found = g.addresses[place].load(std::memory_order_acquire);
        if (found != address ||
            !g.addresses[place].compare_exchange_strong(found, kTaken, std::memory_order_acq_rel))
            continue;
        forget(block);
        return place;
    }
    return kNone;
}

void restore(uint32_t claimed, const void* block) {
    if (claimed == kNone) return;
    g.addresses[claimed].store(reinterpret_cast<uintptr_t>(block), std::memory_order_release);
    remember(block);
}

int64_t settle(uint32_t claimed) {
    if (claimed == kNone) return 0;
    const int64_t now = kernel::monotonic_ns();
    Entry& entry = g.entries[claimed];
    const uint8_t state = entry.state.exchange(kDead, std::memory_order_acq_rel);
    if (recording()) {
        if (state == kYoung && entry.what.coarse_mean > 0) {
            g.young_written.fetch_add(1, std::memory_order_relaxed);
            const uint32_t id = next_id();
            // A death without a birth would say nothing.
            if (write_block(id, entry.what, entry.what.coarse_mean, true)) write_freed(id, now);
        }
        if (state == kWritten || state == kWriting) write_freed(entry.id, now);
    }
    // One that is being written just now is given back by whoever writes it.
    if (state != kWriting) release(claimed);
    return now;
}

void died(const void* block) { settle(claim(block)); }

uint32_t write_survivors(int64_t now_ns, bool all) {
    // One at a time: the recorder's own thread, or whoever ends the recording, who waits for it.
    for (int tries = 0; g.writing.test_and_set(std::memory_order_acquire); ++tries) {
        if (!all || tries > kTries) return 0;
        kernel::call(SYS_sched_yield);
    }
    uint32_t written = 0;
    for (uint32_t place = 0; place < kPlaces; ++place) {
        if (g.addresses[place].load(std::memory_order_acquire) <= kTaken) continue;
        Entry& entry = g.entries[place];
        if (entry.state.load(std::memory_order_acquire) != kYoung) continue;
        if (!all && now_ns - entry.what.time_ns < kYoungNs) continue;
        // The number stands before anyone can find the block in the state that uses it.
        entry.id = next_id();
        uint8_t young = kYoung;
        if (!entry.state.compare_exchange_strong(young, kWriting, std::memory_order_acq_rel))
            continue;
        // One that finds no room is tried again the next time.
        const bool done = write_block(entry.id, entry.what, entry.what.mean, true);
        written += done ? 1 : 0;
        uint8_t writing = kWriting;
        if (!entry.state.compare_exchange_strong(writing, done ? kWritten : kYoung,
                                                 std::memory_order_acq_rel))
            release(place);
    }
    g.writing.clear(std::memory_order_release);
    return written;
}

uint32_t take_young_count() { return g.young_written.exchange(0, std::memory_order_relaxed); }

uint32_t filling() {
    return static_cast<uint32_t>(uint64_t{g.alive.load(std::memory_order_relaxed)} * 1000 /
                                 kPlaces);
}

}  // namespace tachograph::blocks
