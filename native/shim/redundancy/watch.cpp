#include "redundancy/watch.h"

#include "memory/releases.h"
#include "redundancy/block_content.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "tachograph/numbers.h"

namespace tachograph::redundancy {
namespace {

constexpr uint8_t kUnknown = 2;

void write(const Watch& watch, Outcome outcome, const Place* partner, bool equal,
           const Released& released = {}) {
    const spool::Ticket ticket = spool::reserve(Kind::redundancy, sizeof(RedundancyRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<RedundancyRecord*>(ticket.record);
    const Place& sampled = watch.sampled;
    record->time_ns = sampled.time_ns;
    record->cpu_ns = watch.cpu_ns;
    record->pc = sampled.pc;
    record->thread = watch.thread;
    record->stack = sampled.stack;
    record->native_stack = sampled.native_stack;
    record->width = sampled.width;
    record->opcode = sampled.opcode;
    record->stack_state = sampled.stack_state;
    record->native_path = sampled.native_path;
    record->access = static_cast<uint8_t>(watch.kind);
    record->outcome = static_cast<uint8_t>(outcome);
    record->equal = kUnknown;
    record->crossed = kUnknown;
    record->partner_stack = kNone;
    record->partner_stack_state = TG_STACK_UNSEEN;
    record->stores_between = static_cast<uint8_t>(watch.stores);
    record->block_bytes = static_cast<int64_t>(released.size);
    record->block_hash = released.content.hash;
    record->block_head_hash = released.content.head_hash;
    record->block_again = released.again ? 1 : released.looks > 0 ? 2 : 0;  // 0: unknown
    record->rested = watch.rested ? 1 : 2;
    if (sampled.pc != 0) modules::saw(sampled.pc);
    if (partner) {
        record->equal = equal ? 1 : 0;
        record->crossed = static_cast<uint8_t>(watch.crossed.load(std::memory_order_acquire));
        record->partner_time_ns = partner->time_ns;
        record->partner_pc = partner->pc;
        record->partner_stack = partner->stack;
        record->partner_native_stack = partner->native_stack;
        record->partner_width = partner->width;
        record->partner_opcode = partner->opcode;
        record->partner_stack_state = partner->stack_state;
        record->partner_native_path = partner->native_path;
        if (partner->pc != 0) modules::saw(partner->pc);
    }
    spool::commit(ticket);
}

}  // namespace

void end(Watch* watch, Outcome outcome, const Place* partner, bool equal) {
    releases::drop(watch->address);
    write(*watch, outcome, partner, equal);
    watch->state.store(State::free, std::memory_order_release);
}

void end_released(Watch* watch, const Released& released) {
    releases::drop(watch->address);
    write(*watch, Outcome::released, nullptr, false, released);
    watch->state.store(State::free, std::memory_order_release);
}

void follow(Watch* watch, const Released& released, Followed* followed) {
    releases::want(released.address);
    releases::drop(watch->address);
    followed->watch.kind = watch->kind;
    followed->watch.sampled = watch->sampled;
    followed->watch.cpu_ns = watch->cpu_ns;
    followed->watch.thread = watch->thread;
    followed->watch.stores = watch->stores;
    followed->watch.rested = watch->rested;
    followed->released = released;
    watch->state.store(State::free, std::memory_order_release);
    followed->state.store(State::armed, std::memory_order_release);
}

void end(Followed* followed) {
    releases::drop(followed->released.address);
    write(followed->watch, Outcome::released, nullptr, false, followed->released);
    followed->state.store(State::free, std::memory_order_release);
}

void write_unwatched(const Watch& sample, Outcome outcome) {
    write(sample, outcome, nullptr, false);
}

}  // namespace tachograph::redundancy
