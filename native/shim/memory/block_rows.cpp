#include "memory/block_rows.h"

#include "spool/layout.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "tachograph/mixing.h"

namespace tachograph::block_rows {
namespace {

struct State {
    thinning::Item* items = nullptr;
    uint64_t random = 0;
};
constinit State g;

// Eight numbers for each power of two: what says how sure something is need not be surer itself,
// and few different numbers take little room on the disk.
int64_t rounded(double mean) {
    if (mean < 16) return mean > 1 ? static_cast<int64_t>(mean) : 1;
    const auto whole = static_cast<uint64_t>(mean);
    const int unit = 60 - __builtin_clzll(whole);  // of the highest bit and the three behind it
    return static_cast<int64_t>((whole + (uint64_t{1} << unit) / 2) >> unit << unit);
}

// Blocks of one place in the program: in this order those of similar stacks lie together.
uint64_t place_of(const Block& what) {
    const uint32_t where = what.stack != kNone
                               ? what.thread << 3 | what.domain
                               : static_cast<uint32_t>(mix(what.pc ^ uint64_t{what.thread} << 40));
    return uint64_t{what.stack} << 32 | where;
}

}  // namespace

double weight_of(const Block& what) {
    return thinning::stands_for(static_cast<double>(what.size), static_cast<double>(what.mean));
}

bool alike(const Block& one, const Block& other) {
    return one.stack == other.stack && one.thread == other.thread && one.domain == other.domain &&
           one.pc == other.pc;
}

bool write_block(uint32_t id, const Block& what, double weight, double mean, bool followed) {
    const spool::Ticket ticket = spool::reserve(Kind::block, sizeof(BlockRecord));
    if (!ticket.record) return false;
    auto* record = reinterpret_cast<BlockRecord*>(ticket.record);
    record->time_ns = what.time_ns;
    record->size_bytes = what.size;
    record->requested_bytes = what.requested;
    record->mean_bytes = rounded(mean);
    record->weight_bytes = static_cast<int64_t>(weight + 0.5);
    record->pc = what.pc;
    record->block = id;
    record->thread = what.thread;
    record->stack = what.stack;
    record->domain = what.domain;
    record->stack_state = what.stack_state;
    record->native_stack = what.native_stack;
    record->span = what.span;
    record->native_path = what.native_path;
    record->followed = followed ? 1 : 0;
    spool::commit(ticket);
    return true;
}

bool write_sampled(uint32_t id, const Block& what, bool followed) {
    return write_block(id, what, weight_of(what), static_cast<double>(what.mean), followed);
}

void drop(double weight) {
    if (weight > 0) spool::count(Loss::block_bytes_dropped, static_cast<uint64_t>(weight + 0.5));
}

void write_freed(uint32_t id, int64_t time_ns, uint32_t thread, double weight) {
    const spool::Ticket ticket = spool::reserve(Kind::freed, sizeof(FreedRecord));
    if (!ticket.record) return drop(weight);
    auto* record = reinterpret_cast<FreedRecord*>(ticket.record);
    record->time_ns = time_ns;
    record->block = id;
    record->thread = thread;
    spool::commit(ticket);
}

bool open(size_t most) {
    return g.items || own_memory::map(&g.items, sizeof(thinning::Item) * most);
}

void begin(int64_t now_ns) {
    if (g.random == 0) g.random = mix(static_cast<uint64_t>(now_ns));
}

void forget() { g.random = 0; }

thinning::Item* items() { return g.items; }

uint32_t kin_of(int64_t lived_ns) {
    return lived_ns > 0
               ? static_cast<uint32_t>(64 - __builtin_clzll(static_cast<uint64_t>(lived_ns))) / 4
               : 0;
}

void add_item(size_t* count, uint32_t index, const Block& what, double weight, uint32_t kin) {
    thinning::Item& item = g.items[(*count)++];
    item.place = place_of(what);
    item.kin = kin;
    item.span = what.span;
    item.time_ns = what.time_ns;
    item.size = static_cast<double>(what.size);
    item.mean = static_cast<double>(what.mean);
    item.weight = weight;
    item.index = index;
}

uint32_t thin(Allowance& allowance, size_t count, size_t rows) {
    thinning::thin_by_life(g.items, count, rows, &g.random);
    uint32_t chosen = 0;
    for (size_t i = 0; i < count; ++i) chosen += g.items[i].answer > 0 ? 1 : 0;
    allowance.spend(chosen);
    return chosen;
}

}  // namespace tachograph::block_rows
