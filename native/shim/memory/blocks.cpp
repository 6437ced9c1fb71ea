#include "memory/blocks.h"

#include "base/kernel.h"
#include "base/large_data.h"
#include "base/number_pool.h"
#include "base/pages.h"
#include "memory/block_rows.h"
#include "memory/known_pools.h"
#include "memory/pending_blocks.h"
#include "memory/thinning.h"
#include "spool/layout.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "stacks/recorder.h"
#include "stacks/threads.h"
#include "tachograph/mixing.h"

#include <initializer_list>

namespace tachograph::blocks {

using block_rows::add_item;
using block_rows::alike;
using block_rows::Allowance;
using block_rows::drop;
using block_rows::kin_of;
using block_rows::thin;
using block_rows::weight_of;
using block_rows::write_block;
using block_rows::write_freed;
using block_rows::write_sampled;

alignas(pages::kPiece) TG_LARGE_ZEROS std::atomic<uint8_t> g_pages[1u << kPageBits];
alignas(pages::kPiece) TG_LARGE_ZEROS std::atomic<uint8_t> g_filter[1u << kFilterBits];

namespace {

constexpr uint32_t kWays = 16;
constexpr uint32_t kSets = 1u << (kFilterBits - 4);
constexpr uint32_t kPlaces = kSets * kWays;
static_assert(kPlaces < UINT16_MAX);
constexpr uint8_t kSaturated = 255;
constexpr int kTries = 10'000;
constexpr int64_t kPendingNs = 1'000'000'000;
constexpr int64_t kSmallSteps = 64;  // steps that add up to such a part of a block are one
constexpr uint32_t kLongRun = 1000;  // batches until the room that is left would be used up
constexpr uint32_t kDeadSlots = 8192;
constexpr uint32_t kRoomForForms = kDeadSlots / 2;
constexpr size_t kSites = 8;     // whose live blocks are told of
constexpr uintptr_t kTaken = 1;  // a place that is being filled or emptied: no block's address

enum : uint8_t { kEmpty, kPending, kWriting, kWritten, kDropped, kDead, kJoining };

struct Entry {
    Block what;
    int64_t freed_ns;
    int64_t first_size;  // before it grew in small steps
    uint32_t freed_thread;
    uint32_t id;
    uint16_t pending_place;  // in pending_blocks, while it waits for its row
    uint16_t place;          // whose entry it is
    float weight;            // bytes that its row stands for
    int64_t told;            // bytes of it that were in memory (large_from)
    std::atomic<uint8_t> state;
};

// Blocks that have died and were not looked at. Not in the table of those that are alive: there one
// that comes and goes at one address would fill its set.
struct DeadBlock {
    Block what;
    double weight;
    int64_t freed_ns;
    uint32_t freed_thread;
    uint32_t forms_of;           // of which block that went on (realloc); 0: it did not
    std::atomic<uint8_t> state;  // kEmpty, kDead, kWriting, kJoining
};

struct State {
    // By place: the block's address, and which of the entries is its. Places are all over the
    // table, entries lie close together: their pages are many more.
    std::atomic<uintptr_t>* addresses = nullptr;
    std::atomic<uint16_t>* entry_of = nullptr;
    Entry* entries = nullptr;
    DeadBlock* dead_blocks = nullptr;
    std::atomic<uint32_t> next_id{0};
    std::atomic<uint32_t> dead_kept{0};
    std::atomic<uint32_t> next_forms{1};
    std::atomic<uint32_t> alive{0};
    std::atomic<uint32_t> large{0};  // of them
    std::atomic<bool> follows_pages{false};

    // Held while rows are written.
    std::atomic_flag writing = ATOMIC_FLAG_INIT;
    Allowance dead{16, 80, 80};
    Allowance living{24, 120, 120};
    Allowance pages{64, 1280, 1280};  // what came in one go is released in parts
};
constinit State g;
constinit TG_LARGE_ZEROS Numbers<kPlaces> g_entry_numbers;
constinit TG_LARGE_ZEROS Numbers<kDeadSlots> g_dead_numbers;

uint32_t entry_number(uint32_t place) { return g.entry_of[place].load(std::memory_order_relaxed); }
Entry& entry_at(uint32_t place) { return g.entries[entry_number(place)]; }

uint32_t own_thread() {
    const threads::Thread* own = threads::own();
    return own ? own->id.load(std::memory_order_relaxed) : kNone;
}

uint32_t next_id() { return g.next_id.fetch_add(1, std::memory_order_relaxed); }

// A count that has once been saturated stays: then it is not known when it is 0 again.
void change(std::atomic<uint8_t>& count, int by) {
    uint8_t seen = count.load(std::memory_order_relaxed);
    while (seen != kSaturated && !count.compare_exchange_weak(seen, static_cast<uint8_t>(seen + by),
                                                              std::memory_order_relaxed)) {
    }
}

void forget(const void* block) {
    change(g_pages[page_of(block)], -1);
    change(g_filter[hash_of(block)], -1);
    known_pools::look_no_more(reinterpret_cast<uintptr_t>(block));
}

void remember(const void* block) {
    known_pools::look_for(reinterpret_cast<uintptr_t>(block));
    change(g_filter[hash_of(block)], 1);
    change(g_pages[page_of(block)], 1);
}

// The block's row is written, or will never be. Not in a forked child that is not recorded anew:
// there the table is still the parent's.
void end_pending(Entry& entry) {
    if (recording()) pending_blocks::drop(entry.pending_place);
    entry.pending_place = pending_blocks::kNoPlace;
}

// Pages of reserves are told of one by one.
bool is_large(const Block& what) { return what.size >= kLarge; }

void release(uint32_t place) {
    const uint32_t number = entry_number(place);
    Entry& entry = g.entries[number];
    end_pending(entry);
    if (is_large(entry.what)) g.large.fetch_sub(1, std::memory_order_relaxed);
    entry.state.store(kEmpty, std::memory_order_relaxed);
    g_entry_numbers.give(number);
    g.alive.fetch_sub(1, std::memory_order_relaxed);
    g.addresses[place].store(0, std::memory_order_release);
}

// The block goes on living, and is none of ours any more.
void unfollow(uint32_t place, uintptr_t address) {
    if (address <= kTaken ||
        !g.addresses[place].compare_exchange_strong(address, kTaken, std::memory_order_acq_rel))
        return;  // the thread that frees it just now gives the place back, or has done so
    forget(reinterpret_cast<const void*>(address));
    release(place);
}

// For the next look at the table; if there is no room it has a row of its own.
uint32_t keep_dead(const Entry& entry, uint32_t forms_of) {
    const uint32_t number = g_dead_numbers.take();
    if (number == g_dead_numbers.kNoNumber) {
        const uint32_t id = next_id();
        const double weight = weight_of(entry.what);
        if (write_sampled(id, entry.what, true))
            write_freed(id, entry.freed_ns, entry.freed_thread, weight);
        else
            drop(weight);
        return number;
    }
    g.dead_kept.fetch_add(1, std::memory_order_relaxed);
    DeadBlock& dead = g.dead_blocks[number];
    dead.what = entry.what;
    dead.weight = weight_of(entry.what);
    dead.freed_ns = entry.freed_ns;
    dead.freed_thread = entry.freed_thread;
    dead.forms_of = forms_of;
    dead.state.store(kDead, std::memory_order_release);
    return number;
}

// One of them stands for all, each with the chance of its bytes: as unbiased as thinning.
bool join(const Entry& entry, const Block& goes_on) {
    if (goes_on.forms_of == 0) return false;
    DeadBlock& dead = g.dead_blocks[goes_on.forms_slot];
    uint8_t there = kDead;
    if (!dead.state.compare_exchange_strong(there, kJoining, std::memory_order_acq_rel))
        return false;
    // The recorder's own thread may have written them, and another block may have the slot.
    const bool ours = dead.forms_of == goes_on.forms_of && alike(dead.what, entry.what);
    if (ours) {
        const double weight = weight_of(entry.what);
        dead.weight += weight;
        uint64_t random =
            mix(static_cast<uint64_t>(entry.freed_ns) ^ uint64_t{dead.forms_of} << 32);
        if (uniform(&random) * dead.weight < weight) {
            dead.what = entry.what;
            dead.freed_ns = entry.freed_ns;
            dead.freed_thread = entry.freed_thread;
        }
        dead.what.mean = static_cast<int64_t>(dead.weight);
    }
    dead.state.store(kDead, std::memory_order_release);
    return ours;
}

// What a block was that goes on as another: thousands a second, where it grows in small steps.
void keep_form(const Entry& entry, Block* goes_on) {
    if (g.dead_kept.load(std::memory_order_relaxed) < kRoomForForms) {
        keep_dead(entry, 0);
        return;
    }
    if (join(entry, *goes_on)) return;
    uint32_t forms_of = g.next_forms.fetch_add(1, std::memory_order_relaxed);
    const uint32_t number = keep_dead(entry, forms_of);
    const bool kept = number != g_dead_numbers.kNoNumber;
    goes_on->forms_slot = kept ? static_cast<uint16_t>(number) : 0;
    goes_on->forms_of = kept ? forms_of : 0;
}

// A block has died that was in `state`, or goes on as another.
void end(uint32_t place, uint8_t state, Block* goes_on = nullptr) {
    const Entry& entry = entry_at(place);
    if (recording()) {
        if (state == kPending) goes_on ? keep_form(entry, goes_on) : void(keep_dead(entry, 0));
        if (state == kWritten)
            write_freed(entry.id, entry.freed_ns, entry.freed_thread, entry.weight);
    }
    release(place);
}

// With `spare` rows that others do not need.
uint32_t write_dead(int64_t now_ns, bool all, size_t spare) {
    size_t count = 0;
    const uint32_t used = g_dead_numbers.used();
    for (uint32_t index = 0; index < used; ++index) {
        DeadBlock& dead = g.dead_blocks[index];
        uint8_t there = kDead;
        if (!dead.state.compare_exchange_strong(there, kWriting, std::memory_order_acq_rel))
            continue;
        if (all || now_ns - dead.what.time_ns >= kPendingNs)
            add_item(&count, index, dead.what, dead.weight,
                     kin_of(dead.freed_ns - dead.what.time_ns));
        else
            dead.state.store(kDead, std::memory_order_release);
    }
    const uint32_t chosen = thin(g.dead, count, g.dead.take(now_ns, all) + spare);
    for (size_t i = 0; i < count; ++i) {
        const thinning::Item& item = block_rows::items()[i];
        DeadBlock& dead = g.dead_blocks[item.index];
        if (item.answer > 0) {
            const uint32_t id = next_id();
            // A death without a birth would say nothing.
            if (write_block(id, dead.what, item.answer, item.mean, true))
                write_freed(id, dead.freed_ns, dead.freed_thread, item.answer);
            else
                drop(item.answer);
        }
        dead.state.store(kEmpty, std::memory_order_release);
        g.dead_kept.fetch_sub(1, std::memory_order_relaxed);
        g_dead_numbers.give(item.index);
    }
    return chosen;
}

// From kWriting on; false if the block has died meanwhile, and its place is left to us.
bool leave(Entry& entry, uint8_t state) {
    uint8_t writing = kWriting;
    return entry.state.compare_exchange_strong(writing, state, std::memory_order_acq_rel);
}

// A block in this state, by default one that has its row, while it is looked at: what is in its
// entry is no other block's meanwhile.
class Held {
  public:
    explicit Held(uint32_t place, uint8_t state = kWritten)
        : entry_(entry_at(place)), state_(state) {
        if (!entry_.state.compare_exchange_strong(state, kWriting, std::memory_order_acq_rel))
            return;
        held_ = true;
        ours_ = entry_.place == place;
    }
    ~Held() {
        if (held_ && !leave(entry_, state_)) end(entry_.place, state_);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    explicit operator bool() const { return held_ && ours_; }
    Entry* operator->() const { return &entry_; }

  private:
    Entry& entry_;
    const uint8_t state_;
    bool held_ = false;
    bool ours_ = false;
};

// A block that is followed, with its row or before it.
Held followed(uint32_t place) {
    const uint8_t state = entry_at(place).state.load(std::memory_order_acquire);
    return Held(place, state == kPending ? kPending : kWritten);
}

// Pages of reserves, or all other blocks.
uint32_t write_living(int64_t now_ns, Rows which, bool pages) {
    const bool all = which != Rows::old;
    // A process that lives for a moment follows none, and its memory for them is never touched.
    if (g.alive.load(std::memory_order_acquire) == 0) return 0;
    size_t count = 0;
    for (uint32_t place = 0; place < kPlaces; ++place) {
        const uintptr_t address = g.addresses[place].load(std::memory_order_acquire);
        if (address <= kTaken) continue;
        Entry& entry = entry_at(place);
        uint8_t pending = kPending;
        if (!entry.state.compare_exchange_strong(pending, kWriting, std::memory_order_acq_rel)) {
            if (pending == kDropped) unfollow(place, address);  // a failed realloc has put it back
            continue;
        }
        if (entry.place != place) {
            // The block has died since its address was read, and another has the entry.
            if (!leave(entry, kPending)) end(entry.place, kPending);
            continue;
        }
        const bool old = all || now_ns - entry.what.time_ns >= kPendingNs;
        if (old && entry.what.page == pages)
            add_item(&count, place, entry.what, weight_of(entry.what));
        else if (!leave(entry, kPending))
            end(place, kPending);
    }
    // What is written is followed: so it must leave room for as long as the program may run.
    const uint32_t used = g.alive.load(std::memory_order_relaxed);
    const size_t room = used < kPlaces / 2 ? (kPlaces / 2 - used) / kLongRun + 1 : 1;
    Allowance& allowance = pages ? g.pages : g.living;
    size_t rows = allowance.take(now_ns, all);
    if (which < Rows::last && used > kPlaces / 4 && rows > room) rows = room;
    const uint32_t chosen = thin(allowance, count, rows);
    for (size_t i = 0; i < count; ++i) {
        const uint32_t place = block_rows::items()[i].index;
        Entry& entry = entry_at(place);
        if (block_rows::items()[i].answer <= 0) {
            const uintptr_t address = g.addresses[place].load(std::memory_order_acquire);
            if (leave(entry, kDropped))
                unfollow(place, address);
            else
                release(place);
            continue;
        }
        // The number stands before any thread can find the block in the state that uses it.
        entry.id = next_id();
        // One that finds no room in the spool is tried again the next time.
        const double weight = block_rows::items()[i].answer;
        const bool done =
            write_block(entry.id, entry.what, weight, block_rows::items()[i].mean, true);
        entry.weight = static_cast<float>(weight);
        // It will stand for itself, and no longer for those that were left out.
        if (!done) drop(which == Rows::end ? weight : weight - weight_of(entry.what));
        if (!done && which == Rows::end) {
            const uintptr_t address = g.addresses[place].load(std::memory_order_acquire);
            leave(entry, kDropped) ? unfollow(place, address) : release(place);
            continue;
        }
        if (done) end_pending(entry);
        if (!leave(entry, done ? kWritten : kPending)) end(place, done ? kWritten : kPending);
    }
    return chosen;
}

// The kernel takes whole pages away: in a forked child each page that is stored to is a copy of the
// parent's. A table that is no whole number of pages is looked at first, for the same reason.
template <size_t kCounts>
void clear_counts(std::atomic<uint8_t> (&counts)[kCounts]) {
    if (kCounts % pages::size() == 0 && kernel::clear(counts, kCounts)) return;
    for (std::atomic<uint8_t>& count : counts)
        if (count.load(std::memory_order_relaxed) != 0) count.store(0, std::memory_order_relaxed);
}

}  // namespace

bool open() {
    return (g.entries || own_memory::map_for_one_process(&g.entries, sizeof(Entry) * kPlaces)) &&
           (g.addresses ||
            own_memory::map_for_one_process(&g.addresses, sizeof(uintptr_t) * kPlaces)) &&
           (g.entry_of ||
            own_memory::map_for_one_process(&g.entry_of, sizeof(uint16_t) * kPlaces)) &&
           (g.dead_blocks ||
            own_memory::map_for_one_process(&g.dead_blocks, sizeof(DeadBlock) * kDeadSlots)) &&
           block_rows::open(kPlaces);
}

void forget_all() {
    kernel::clear_for_one_process(g.addresses, sizeof(uintptr_t) * kPlaces);
    kernel::clear_for_one_process(g.entry_of, sizeof(uint16_t) * kPlaces);
    kernel::clear_for_one_process(g.entries, sizeof(Entry) * kPlaces);
    g_entry_numbers.reset();
    clear_counts(g_pages);
    clear_counts(g_filter);
    g.next_id.store(0);
    g_dead_numbers.reset();
    g.dead_kept.store(0);
    pending_blocks::forget();
    g.alive.store(0);
    g.large.store(0);
    kernel::clear_for_one_process(g.dead_blocks, sizeof(DeadBlock) * kDeadSlots);
    for (Allowance* rows : {&g.dead, &g.living, &g.pages})
        *rows = {rows->per_second, rows->most, rows->most};
    block_rows::forget();
    g.writing.clear();
}

void follow(const void* block, const Block& what) {
    const uint32_t first = (hash_of(block) >> 4) * kWays;
    for (uint32_t place = first; place < first + kWays; ++place) {
        uintptr_t free = 0;
        if (!g.addresses[place].compare_exchange_strong(free, kTaken, std::memory_order_acq_rel))
            continue;
        // There are as many entries as places, and a place gives its entry back before itself.
        const uint32_t number = g_entry_numbers.take();
        g.entry_of[place].store(static_cast<uint16_t>(number), std::memory_order_relaxed);
        Entry& entry = g.entries[number];
        entry.what = what;
        entry.place = static_cast<uint16_t>(place);
        entry.told = kUntold;
        entry.first_size = what.size;
        uint8_t state = kPending;
        if (what.at_once) {
            entry.id = next_id();
            entry.weight = static_cast<float>(weight_of(what));
            if (write_sampled(entry.id, what, true)) state = kWritten;
        }
        if (what.page) g.follows_pages.store(true, std::memory_order_relaxed);
        entry.pending_place = state == kPending ? pending_blocks::keep(what, weight_of(what))
                                                : pending_blocks::kNoPlace;
        entry.state.store(state, std::memory_order_release);
        g.alive.fetch_add(1, std::memory_order_relaxed);
        if (is_large(what)) g.large.fetch_add(1, std::memory_order_relaxed);
        g.addresses[place].store(reinterpret_cast<uintptr_t>(block), std::memory_order_release);
        remember(block);
        return;
    }
    spool::count(Loss::blocks_unfollowed);
    if (!write_sampled(next_id(), what, false)) drop(weight_of(what));
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

// Only of one that stands for itself alone: another would stand for more than it did.
bool grew_little(uint32_t claimed, size_t size, size_t requested) {
    Entry& entry = entry_at(claimed);
    uint8_t pending = kPending;
    if (!entry.state.compare_exchange_strong(pending, kWriting, std::memory_order_acq_rel))
        return false;
    const auto now = static_cast<int64_t>(size);
    Block& what = entry.what;
    const bool little = now >= what.size &&
                        now - entry.first_size <= entry.first_size / kSmallSteps &&
                        what.size / 2 >= what.mean && (now >= kLarge) == is_large(what);
    if (little) {
        what.size = now;
        what.requested = static_cast<int64_t>(requested);
    }
    leave(entry, kPending);  // as it is claimed, no other thread ends it
    return little;
}

int64_t settle(uint32_t claimed, Block* goes_on) {
    if (claimed == kNone) return 0;
    Entry& entry = entry_at(claimed);
    if (goes_on) *goes_on = entry.what;
    const int64_t now = kernel::monotonic_ns();
    entry.freed_ns = now;
    entry.freed_thread = own_thread();
    const uint8_t state = entry.state.exchange(kDead, std::memory_order_acq_rel);
    if (state == kWriting)
        return now;  // the thread that writes it sees this, and gives the place back
    end(claimed, state, goes_on);
    return now;
}

void died(const void* block) { settle(claim(block)); }

uint32_t write(int64_t now_ns, Rows which) {
    const bool all = which != Rows::old;
    // One at a time: the recorder's own thread, or the thread that ends the recording and waits for
    // it.
    for (int tries = 0; g.writing.test_and_set(std::memory_order_acquire); ++tries) {
        if (!all || tries > kTries) return 0;
        kernel::call(SYS_sched_yield);
    }
    block_rows::begin(now_ns);
    uint32_t living = write_living(now_ns, which, false);
    if (g.follows_pages.load(std::memory_order_relaxed))
        living += write_living(now_ns, which, true);
    const size_t spare = all ? g.living.spare() : 0;
    const uint32_t written = living + write_dead(now_ns, all, spare);
    g.writing.clear(std::memory_order_release);
    return written;
}

uint32_t filling() {
    return static_cast<uint32_t>(uint64_t{g.alive.load(std::memory_order_relaxed)} * 1000 /
                                 kPlaces);
}

size_t largest(tg_live_block* found, size_t most) {
    for (int tries = 0; g.writing.test_and_set(std::memory_order_acquire); ++tries) {
        if (tries > kTries) return 0;
        kernel::call(SYS_sched_yield);
    }
    size_t count = 0;
    if (g.alive.load(std::memory_order_acquire) > 0)
        for (uint32_t place = 0; place < kPlaces; ++place) {
            const uintptr_t address = g.addresses[place].load(std::memory_order_acquire);
            if (address <= kTaken) continue;
            const Held held = followed(place);
            if (!held || held->what.page || held->what.stack == kNone) continue;
            add_item(&count, place, held->what, weight_of(held->what));
            block_rows::items()[count - 1].place = held->what.stack;
        }
    const size_t chosen =
        thinning::largest_places(block_rows::items(), count, kSites, most / kSites);
    size_t told = 0;
    for (size_t i = 0; i < chosen; ++i) {
        const uint32_t place = block_rows::items()[i].index;
        const uintptr_t address = g.addresses[place].load(std::memory_order_acquire);
        if (address <= kTaken) continue;  // it has died
        const Held held = followed(place);
        if (!held || held->what.stack != block_rows::items()[i].place) continue;
        found[told++] = {reinterpret_cast<const void*>(address), held->what.size, held->what.stack};
    }
    g.writing.clear(std::memory_order_release);
    return told;
}

bool any_large() { return g.large.load(std::memory_order_relaxed) > 0; }

bool large_from(uint32_t place, Large* found) {
    for (; place < kPlaces; ++place) {
        const uintptr_t address = g.addresses[place].load(std::memory_order_acquire);
        if (address <= kTaken) continue;
        const Held held(place);
        if (!held || !is_large(held->what)) continue;
        *found = {place, held->id, address, held->what.size, held->told};
        return true;
    }
    return false;
}

void tell(const Large& block, int64_t time_ns, int64_t resident) {
    if (g.addresses[block.place].load(std::memory_order_acquire) != block.address) return;
    const Held held(block.place);
    // It may have died, and another block may have its place or its address.
    if (!held || held->id != block.id) return;
    const spool::Ticket ticket = spool::reserve(Kind::touched, sizeof(TouchedRecord));
    if (!ticket.record) return;
    held->told = resident;
    auto* record = reinterpret_cast<TouchedRecord*>(ticket.record);
    record->time_ns = time_ns;
    record->resident_bytes = resident;
    record->block = block.id;
    spool::commit(ticket);
}

}  // namespace tachograph::blocks
