// The shim's side of tachograph/api.h.
#include "tachograph/api.h"

#include "base/kernel.h"
#include "base/safe_read.h"
#include "memory/blocks.h"
#include "memory/domains.h"
#include "memory/footprint.h"
#include "memory/heap.h"
#include "memory/known_pools.h"
#include "memory/mappings.h"
#include "process/lifecycle.h"
#include "spool/layout.h"
#include "spool/process_log.h"
#include "spool/process_metadata.h"
#include "spool/record.h"
#include "spool/settings.h"
#include "spool/spool.h"
#include "stacks/contexts.h"
#include "stacks/paths.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/threads.h"

#include <cstring>

namespace tachograph {
namespace {

int api_arm(const tg_walker* walker, char* error, size_t size) {
    return lifecycle::arm(settings::options(), *walker, error, size);
}

int api_meta(const char* key, const char* value) {
    return recording() && process_metadata::tell(key, value) ? 0 : -1;
}

int api_span(const tg_span* span) {
    const threads::Thread* own = live() ? threads::current() : nullptr;
    if (!own || recorder().paused.load(std::memory_order_relaxed)) return -1;
    const size_t name_length = strlen(span->name);
    const size_t fields_length = strlen(span->fields);
    if (name_length > UINT16_MAX) return -1;
    const spool::Ticket ticket =
        spool::reserve(Kind::span, sizeof(SpanRecord) + name_length + fields_length);
    if (!ticket.record) return -1;
    auto* record = reinterpret_cast<SpanRecord*>(ticket.record);
    record->start_ns = span->start_ns;
    record->end_ns = span->end_ns;
    record->thread = own->id.load(std::memory_order_relaxed);
    record->span = span->span;
    record->parent = span->parent;
    record->name_length = static_cast<uint16_t>(name_length);
    record->fields_length = static_cast<uint32_t>(fields_length);
    memcpy(record + 1, span->name, name_length);
    memcpy(reinterpret_cast<uint8_t*>(record + 1) + name_length, span->fields, fields_length);
    spool::commit(ticket);
    return 0;
}

void api_referrer(const tg_referrer* link) {
    if (!live()) return;
    const spool::Ticket ticket = spool::reserve(
        Kind::referrer, sizeof(ReferrerRecord) + link->type_length + size_t{link->name_length});
    if (!ticket.record) return;
    auto* record = reinterpret_cast<ReferrerRecord*>(ticket.record);
    record->time_ns = link->time_ns;
    record->size_bytes = link->size;
    record->stack = link->stack;
    record->chain = link->chain;
    record->link = link->link;
    record->role = link->role;
    record->type_length = link->type_length;
    record->name_length = link->name_length;
    memcpy(record + 1, link->type, link->type_length);
    memcpy(reinterpret_cast<uint8_t*>(record + 1) + link->type_length, link->name,
           link->name_length);
    spool::commit(ticket);
}

int api_snapshot() {
    if (!recording() || settings::options().rotates == 0) return 0;
    __atomic_fetch_add(&spool::control()->snapshots_requested, 1, __ATOMIC_RELEASE);
    return 1;
}

int api_read(void* to, const void* from, size_t size) {
    if (recording()) return safe_read::copy(to, from, size) ? 1 : 0;
    // Before arming (the check that we know this interpreter) faults are not handled yet.
    const bool before = safe_read::kernel_chosen();
    safe_read::use_kernel(true);
    const bool read = safe_read::copy(to, from, size) || safe_read::copy_checked(to, from, size);
    safe_read::use_kernel(before);
    return read ? 1 : 0;
}

// A ticket packs into the header that will be written; the record is found again by address.
uint8_t* api_reserve(uint8_t kind, size_t size, uint64_t* ticket) {
    // A child of a plain clone() shares the segments, and has counters of its own of what is used.
    if (recording() && !live()) return nullptr;
    const spool::Ticket made = spool::reserve(static_cast<Kind>(kind), size);
    *ticket = made.header;
    return made.record;
}

void api_commit(uint8_t* record, uint64_t ticket, int filled) {
    spool::commit({record, filled ? ticket : abandoned_header(ticket), 0});
}

// An arena begins with a pool, and its pools agree with what is known of them. What is used of them
// is added up.
struct Held {
    const tg_pools* pools;
    int64_t bytes;
};

bool is_arena(uintptr_t address, void* context) {
    auto* held = static_cast<Held*>(context);
    const tg_pools& pools = *held->pools;
    const uintptr_t first = (address + pools.pool_size - 1) & ~(pools.pool_size - 1);
    int64_t bytes = 0;
    bool any = false;
    for (uintptr_t pool = first; pool + pools.pool_size <= address + pools.arena_size;
         pool += pools.pool_size) {
        uint32_t used = 0;
        uint32_t size_class = 0;
        if (!api_read(&used, reinterpret_cast<const void*>(pool), sizeof used) ||
            !api_read(&size_class, reinterpret_cast<const void*>(pool + pools.class_offset),
                      sizeof size_class))
            return false;
        const uint64_t in_use = uint64_t{used} * pools.unit * (uint64_t{size_class} + 1);
        if (used == 0) continue;
        if (size_class >= pools.classes || in_use > pools.pool_size) return false;
        any = true;
        bytes += static_cast<int64_t>(in_use);
    }
    if (!any) return false;
    held->bytes += bytes;
    known_pools::add(first, address + pools.arena_size);
    return true;
}

void api_begin_memory(const tg_pools* pools, int complete) {
    Held held{pools, 0};
    if (pools) {
        const size_t arenas = mappings::disown(pools->arena_size, is_arena, &held);
        footprint::count_outside(TG_DOMAIN_MAPPED, 0, static_cast<int64_t>(arenas));
    }
    // An interpreter that runs already has small blocks somewhere.
    const bool known = complete && heap::complete() && (!pools || held.bytes > 0);
    if (!known) spool::count(Loss::baseline_unknown);
    // Begun in the middle of a program, the footprint is what has come since.
    heap::begin(known ? held.bytes : settings::are_from_inside() ? 0 : -1, known);
}

int api_configure(const char* spool, const char* config) {
    if (!settings::set_from_inside(spool, config)) return -1;
    process_log::open(spool, {});
    return 0;
}

void api_name_thread(pid_t tid, const char* name, size_t length) {
    threads::Thread* thread = recording() ? threads::find(tid) : nullptr;
    if (!thread) return;
    thread->python.store(true, std::memory_order_relaxed);
    threads::write_name(thread->id.load(std::memory_order_relaxed), true, name, length);
}

constexpr tg_api kApi = {
    .version = TG_API_VERSION,
    .options = [] { return &settings::options(); },
    .arm = api_arm,
    .pause = [] { lifecycle::pause(true); },
    .resume = [] { lifecycle::pause(false); },
    .active = [] { return recording() ? 1 : 0; },
    .meta = api_meta,
    .span = api_span,
    .snapshot = api_snapshot,
    .restart_helper = lifecycle::restart_helper,
    .arm_again = lifecycle::arm_again,
    .exiting = lifecycle::exiting,
    .configure = api_configure,
    .disarm = [](int early) { return lifecycle::disarm(early) ? 0 : -1; },
    .leave_out = lifecycle::leave_out,
    .name_thread = api_name_thread,
    .knows_pools = [](const tg_pools* pools) { return domains::known(*pools) ? 1 : 0; },
    .wrap_allocator =
        [](int domain, const tg_allocator* original, const tg_pools* pools, tg_allocator* wrapper) {
            return domains::wrap(domain, *original, pools, wrapper) ? 1 : 0;
        },
    .wrap_releases =
        [](int domain, const tg_allocator* original, tg_allocator* wrapper) {
            return domains::wrap_releases(domain, *original, wrapper) ? 1 : 0;
        },
    .wrap_arenas =
        [](const tg_arena_allocator* original, const tg_pools* pools, tg_arena_allocator* wrapper) {
            return domains::wrap_arenas(*original, *pools, wrapper) ? 1 : 0;
        },
    .unwrapped = [](int allocators,
                    int arenas) { domains::unwrapped(allocators != 0, arenas != 0); },
    .saw_block = [](const void* block) { return heap::t_local.allocated.hold(block) ? 1 : 0; },
    .own_allocated =
        [](int domain) {
            const heap::Counters* counters = heap::t_local.counters;
            return counters ? counters->flows[domain].allocated : int64_t{-1};
        },
    .begin_memory = api_begin_memory,
    .live_blocks = [](tg_live_block* found,
                      size_t most) { return recording() ? blocks::largest(found, most) : 0; },
    .referrer = api_referrer,
    .sampling_ns = [] { return sources::cost("cpu").handlers_ns; },
    .count_loss = [](uint32_t cause) { spool::count(static_cast<Loss>(cause)); },
    .read = api_read,
    .intern_stack =
        [](uint32_t parent, uint32_t code, int32_t instruction, const tg_text* task,
           int last_room) {
            return contexts::intern_stack(parent, code, instruction, task, last_room != 0);
        },
    .intern_path = [](const tg_path* path) { return paths::intern(*path); },
    .intern_code = contexts::intern_code,
    .code_written = [](uint32_t code, int written) { contexts::code_written(code, written != 0); },
    .reserve = api_reserve,
    .commit = api_commit,
    .borrow_scratch = contexts::borrow_scratch,
    .return_scratch = contexts::return_scratch,
};

}  // namespace
}  // namespace tachograph

extern "C" __attribute__((visibility("default"))) const tg_api* tachograph_api() {
    return &tachograph::kApi;
}
