#include "memory/pending_blocks.h"

#include "base/large_data.h"
#include "base/number_pool.h"
#include "spool/layout.h"
#include "spool/record.h"
#include "spool/spool.h"

namespace tachograph::pending_blocks {
namespace {

constexpr uint16_t kUnkept = UINT16_MAX;
static_assert(kPendingPlaces < kUnkept);

constinit TG_LARGE_ZEROS Numbers<kPendingPlaces> g_numbers;

uint64_t header_of(uint32_t index) {
    const uint64_t offset = kControlSize + uint64_t{index} * sizeof(BlockRecord);
    return record_header(Kind::block, sizeof(BlockRecord), offset, 0);
}

void fill(BlockRecord* record, uint32_t index, const blocks::Block& what, double weight) {
    record->time_ns = what.time_ns;
    record->size_bytes = what.size;
    record->requested_bytes = what.requested;
    record->mean_bytes = what.mean;
    record->weight_bytes = static_cast<int64_t>(weight + 0.5);
    record->pc = what.pc;
    record->block = kFirstPending + index;
    record->thread = what.thread;
    record->stack = what.stack;
    record->domain = what.domain;
    record->stack_state = what.stack_state;
    record->span = what.span;
    record->followed = 1;
    __atomic_store_n(&record->header, header_of(index), __ATOMIC_RELEASE);
}

}  // namespace

uint16_t keep(const blocks::Block& what, double weight) {
    BlockRecord* places = spool::pending_blocks();
    if (!places) return kNoPlace;
    const uint32_t index = g_numbers.take();
    if (index != g_numbers.kNoNumber) {
        fill(&places[index], index, what, weight);
        return static_cast<uint16_t>(index + 1);
    }
    __atomic_fetch_add(&spool::control()->pending_unkept, 1, __ATOMIC_RELAXED);
    return kUnkept;
}

void drop(uint16_t place) {
    BlockRecord* places = spool::pending_blocks();
    if (!places || place == kNoPlace) return;
    if (place == kUnkept) {
        __atomic_fetch_sub(&spool::control()->pending_unkept, 1, __ATOMIC_RELAXED);
        return;
    }
    // What is half filled has no header of a record, and is not read.
    __atomic_store_n(&places[place - 1].header, 0, __ATOMIC_RELEASE);
    g_numbers.give(place - 1);
}

void forget() { g_numbers.reset(); }

}  // namespace tachograph::pending_blocks
