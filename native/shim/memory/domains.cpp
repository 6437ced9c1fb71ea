#include "memory/domains.h"

#include "base/safe_read.h"
#include "memory/heap.h"
#include "memory/releases.h"

#include <cstring>

namespace tachograph::domains {
namespace {

using heap::Local;
using heap::t_local;

struct Wrapped {
    tg_allocator original;
};

struct State {
    Wrapped wrapped[TG_DOMAINS + 3] = {};
    uint32_t used = 0;
    uint32_t kept = 0;  // of these, since earlier recordings
    tg_arena_allocator arenas{};
    size_t arena_size = 0;
    tg_allocator told[TG_DOMAINS] = {};  // behind those that only tell of releases
};
constinit State g;

// pymalloc's layout has been the same in all versions that we know; another one is refused.
constexpr tg_pools kPools{
    .pool_size = 16 * 1024, .class_offset = 36, .unit = 16, .classes = 32, .arena_size = 0};

uint32_t size_in_pool(const void* block) {
    const auto pool = reinterpret_cast<uintptr_t>(block) & ~(kPools.pool_size - 1);
    uint32_t size_class;
    memcpy(&size_class, reinterpret_cast<const void*>(pool + kPools.class_offset),
           sizeof size_class);
    return (size_class + 1) * static_cast<uint32_t>(kPools.unit);
}

const Wrapped& of(void* context) { return *static_cast<const Wrapped*>(context); }

// The outermost domain is a block's: OBJ calls RAW for large ones, and RAW calls malloc.
// Also what stays when a recording ends, below an allocator that came later.
bool nested(const Local& local) {
    return __builtin_expect(local.domain != TG_DOMAIN_NATIVE, 0) || heap::passing();
}

// A block that did not come through malloc came from a pool.
bool small(const heap::Recent& through_malloc, const void* block, size_t size) {
    return through_malloc.none() ||
           (size <= kPools.unit * kPools.classes && !through_malloc.hold(block));
}

// What goes on in here is what millions of small blocks pay: each function is made for its domain,
// and whatever is rare is elsewhere.
template <int kDomain, bool kSmall>
void* allocate(void* context, size_t size) {
    const Wrapped& w = of(context);
    Local& local = t_local;
    if (nested(local)) return w.original.allocate(w.original.context, size);
    local.domain = kDomain;
    local.allocated.count = 0;
    void* block = w.original.allocate(w.original.context, size);
    if (kSmall && __builtin_expect(block != nullptr, 1) && small(local.allocated, block, size))
        heap::took<kDomain>(local, block, size_in_pool(block), size, __builtin_return_address(0));
    local.domain = TG_DOMAIN_NATIVE;
    return block;
}

template <int kDomain, bool kSmall>
void* allocate_zeroed(void* context, size_t count, size_t size) {
    const Wrapped& w = of(context);
    Local& local = t_local;
    if (nested(local)) return w.original.allocate_zeroed(w.original.context, count, size);
    local.domain = kDomain;
    local.allocated.count = 0;
    void* block = w.original.allocate_zeroed(w.original.context, count, size);
    if (kSmall && __builtin_expect(block != nullptr, 1) &&
        small(local.allocated, block, count * size))
        heap::took<kDomain>(local, block, size_in_pool(block), count * size,
                            __builtin_return_address(0));
    local.domain = TG_DOMAIN_NATIVE;
    return block;
}

// A block's size is still in the head of its pool: an arena that goes with its last block goes when
// we have looked.
void release_waiting_arena(Local& local) {
    g.arenas.release(g.arenas.context, local.waiting_arena, g.arena_size);
    local.waiting_arena = nullptr;
}

template <int kDomain>
__attribute__((always_inline)) inline void gave_small(Local& local, const void* block) {
    const uint32_t size = size_in_pool(block);
    releases::tell(block, size);
    heap::gave<kDomain>(local, size);
}

template <int kDomain>
__attribute__((noinline)) void end_release_slowly(Local& local, const void* block) {
    if (!local.freed.hold(block)) gave_small<kDomain>(local, block);
    if (local.waiting_arena) release_waiting_arena(local);
}

template <int kDomain>
__attribute__((always_inline)) inline void end_release(Local& local, const void* block) {
    if (__builtin_expect(local.freed.count != 0, 0)) {
        if (local.freed.only(block)) return;  // free has counted it
        return end_release_slowly<kDomain>(local, block);
    }
    gave_small<kDomain>(local, block);
}

template <int kDomain, bool kSmall>
void release(void* context, void* block) {
    const Wrapped& w = of(context);
    Local& local = t_local;
    if (nested(local) || !block) return w.original.release(w.original.context, block);
    local.domain = kDomain;
    if (kSmall) {
        heap::gives(block);
        local.freed.count = 0;
    }
    w.original.release(w.original.context, block);
    if (kSmall) end_release<kDomain>(local, block);
    local.domain = TG_DOMAIN_NATIVE;
}

template <int kDomain, bool kSmall>
void* reallocate(void* context, void* block, size_t size) {
    const Wrapped& w = of(context);
    Local& local = t_local;
    if (nested(local)) return w.original.reallocate(w.original.context, block, size);
    local.domain = kDomain;
    local.allocated.count = 0;
    local.freed.count = 0;
    const bool look = kSmall && block;
    const uint32_t followed = look && blocks::maybe_followed(block) ? blocks::claim(block) : kNone;
    void* moved = w.original.reallocate(w.original.context, block, size);
    if (moved && kSmall) {
        local.moved_ns = blocks::settle(followed);
        if (look) end_release<kDomain>(local, block);
        if (small(local.allocated, moved, size))
            heap::took<kDomain>(local, moved, size_in_pool(moved), size,
                                __builtin_return_address(0));
        local.moved_ns = 0;
    } else {
        blocks::restore(followed, block);
    }
    local.domain = TG_DOMAIN_NATIVE;
    return moved;
}

// A block that did not go through free was in a pool, whose arena may be gone by now.
void tell_small(const Local& local, const void* block) {
    if (local.freed.hold(block)) return;
    const uintptr_t pool = reinterpret_cast<uintptr_t>(block) & ~(kPools.pool_size - 1);
    uint32_t size_class = 0;
    if (!safe_read::copy(&size_class, reinterpret_cast<const void*>(pool + kPools.class_offset),
                         sizeof size_class) ||
        size_class >= kPools.classes)
        return;
    releases::tell(block, (size_class + 1) * kPools.unit);
}

template <int kDomain>
__attribute__((noinline)) void release_and_tell(void* context, void* block) {
    t_local.freed.count = 0;
    g.told[kDomain].release(context, block);
    tell_small(t_local, block);
}

template <int kDomain>
void release_told(void* context, void* block) {
    if (releases::near(block)) return release_and_tell<kDomain>(context, block);
    g.told[kDomain].release(context, block);
}

template <int kDomain>
void* reallocate_told(void* context, void* block, size_t size) {
    t_local.freed.count = 0;
    void* moved = g.told[kDomain].reallocate(context, block, size);
    if (moved && releases::near(block)) tell_small(t_local, block);
    return moved;
}

template <int kDomain>
bool wrap_told(const tg_allocator& original, tg_allocator* wrapper) {
    if (g.told[kDomain].release) return false;
    g.told[kDomain] = original;
    // The context is the original's own.
    *wrapper = original;
    wrapper->reallocate = reallocate_told<kDomain>;
    wrapper->release = release_told<kDomain>;
    return true;
}

void* allocate_arena(void*, size_t size) {
    Local& local = t_local;
    const bool before = local.uncounted;
    local.uncounted = size == g.arena_size;  // its blocks are counted, not it
    void* arena = g.arenas.allocate(g.arenas.context, size);
    local.uncounted = before;
    return arena;
}

void release_arena(void*, void* arena, size_t size) {
    Local& local = t_local;
    if (size != g.arena_size || !nested(local) || local.waiting_arena)
        return g.arenas.release(g.arenas.context, arena, size);
    local.waiting_arena = arena;
    local.freed.count |= heap::Recent::kLook;
}

template <int kDomain, bool kSmall>
tg_allocator around(Wrapped* w) {
    return {w, allocate<kDomain, kSmall>, allocate_zeroed<kDomain, kSmall>,
            reallocate<kDomain, kSmall>, release<kDomain, kSmall>};
}

tg_allocator around(int domain, bool small, Wrapped* w) {
    if (domain == TG_DOMAIN_RAW) return around<TG_DOMAIN_RAW, false>(w);
    if (domain == TG_DOMAIN_MEM)
        return small ? around<TG_DOMAIN_MEM, true>(w) : around<TG_DOMAIN_MEM, false>(w);
    return small ? around<TG_DOMAIN_OBJ, true>(w) : around<TG_DOMAIN_OBJ, false>(w);
}

}  // namespace

bool wrap(int domain, const tg_allocator& original, const tg_pools* pools, tg_allocator* wrapper) {
    if (g.used >= sizeof g.wrapped / sizeof g.wrapped[0] || (pools && !known(*pools))) return false;
    heap::keep_counting();
    // One that has stayed is the outermost again: it does what it did.
    const auto* there = static_cast<const Wrapped*>(original.context);
    for (uint32_t i = 0; i < g.kept; ++i) {
        if (there != &g.wrapped[i]) continue;
        *wrapper = original;
        return true;
    }
    Wrapped& w = g.wrapped[g.used++];
    w.original = original;
    *wrapper = around(domain, pools != nullptr, &w);
    return true;
}

bool wrap_releases(int domain, const tg_allocator& original, tg_allocator* wrapper) {
    if (domain == TG_DOMAIN_MEM) return wrap_told<TG_DOMAIN_MEM>(original, wrapper);
    return domain == TG_DOMAIN_OBJ && wrap_told<TG_DOMAIN_OBJ>(original, wrapper);
}

bool wrap_arenas(const tg_arena_allocator& original, const tg_pools& pools,
                 tg_arena_allocator* wrapper) {
    if (g.arenas.allocate) return false;
    g.arenas = original;
    g.arena_size = pools.arena_size;
    *wrapper = {nullptr, allocate_arena, release_arena};
    return true;
}

void unwrapped(bool allocators, bool arenas) {
    if (allocators) g.used = g.kept;
    g.kept = g.used;
    if (arenas) g.arenas = {};
}

bool known(const tg_pools& pools) {
    return pools.pool_size == kPools.pool_size && pools.class_offset == kPools.class_offset &&
           pools.unit == kPools.unit && pools.classes == kPools.classes;
}

}  // namespace tachograph::domains
