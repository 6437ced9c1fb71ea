#include "memory/pending_blocks.h"

#include "spool/layout.h"
#include "spool/record.h"
#include "spool/spool.h"

#include <atomic>

namespace tachograph::pending_blocks {
namespace {

constexpr uint16_t kUnkept = UINT16_MAX;
constexpr uint64_t kFilling = 1;  // no header of a record: what is half there is not read
constexpr uint32_t kProbes = 32;
static_assert(kPendingPlaces < kUnkept);

std::atomic<uint32_t> g_next{0};

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
    record->followed = 1;
    __atomic_store_n(&record->header, header_of(index), __ATOMIC_RELEASE);
}

}  // namespace

uint16_t keep(const blocks::Block& what, double weight) {
    BlockRecord* places = spool::pending_blocks();
    if (!places) return kNoPlace;
    const uint32_t first = g_next.fetch_add(1, std::memory_order_relaxed);
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
        const uint32_t index = (first + probe) % kPendingPlaces;
        uint64_t free = 0;
        if (!__atomic_compare_exchange_n(&places[index].header, &free, kFilling, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        fill(&places[index], index, what, weight);
        return static_cast<uint16_t>(index + 1);
    }
    __atomic_fetch_add(&spool::control()->pending_unkept, 1, __ATOMIC_RELAXED);
    return kUnkept;
}

void drop(uint16_t place) {
    BlockRecord* places = spool::pending_blocks();
    if (!places || place == kNoPlace) return;
    if (place == kUnkept)
        __atomic_fetch_sub(&spool::control()->pending_unkept, 1, __ATOMIC_RELAXED);
    else
        __atomic_store_n(&places[place - 1].header, 0, __ATOMIC_RELEASE);
}

}  // namespace tachograph::pending_blocks
