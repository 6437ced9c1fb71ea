#include "memory/domains.h"

#include "base/safe_read.h"
#include "base/sandbox.h"
#include "memory/heap.h"
#include "memory/known_pools.h"
#include "memory/releases.h"
#include "spool/spool.h"
#include "stacks/recorder.h"

#include <atomic>

namespace tachograph::domains {
namespace {

using heap::Counters;
using heap::Local;
using heap::t_local;

// What a wrapper calls is known by which of these functions it is, and not by the context that it
// is called with: callers that take the allocator for an unwrapped one pass none (Nuitka's).
constexpr int kLayers = 4;  // of one domain, of recordings one after the other

struct State {
    tg_allocator originals[TG_DOMAINS][kLayers] = {};
    int used[TG_DOMAINS] = {};
    int kept[TG_DOMAINS] = {};  // of these, since earlier recordings
    tg_arena_allocator arenas{};
    size_t arena_size = 0;
    tg_allocator told[TG_DOMAINS] = {};  // behind those that only tell of releases
    std::atomic<bool> foreign_met{false};
};
constinit State g;

// pymalloc's layout has been the same in all versions that we know; another one is refused.
constexpr tg_pools kPools{
    .pool_size = 16 * 1024, .class_offset = 36, .unit = 16, .classes = 32, .arena_size = 0};
static_assert(kPools.pool_size == known_pools::kPool);
constexpr size_t kLargestSmall = kPools.unit * kPools.classes;
// In the head of a pool, as well: where its last block begins. Blocks begin behind the head.
constexpr size_t kLastBlockOffset = 44;
constexpr size_t kHead = 48;

uintptr_t pool_of(const void* block) {
    return reinterpret_cast<uintptr_t>(block) & ~(kPools.pool_size - 1);
}

// Of the blocks in a pool; 0 if its head cannot be read, or is not one.
uint32_t size_by_head(uintptr_t pool) {
    constexpr uint32_t kNone = kPools.classes;
    const uint32_t size_class = safe_read::peek(pool + kPools.class_offset, kNone);
    return __builtin_expect(size_class < kPools.classes, 1)
               ? (size_class + 1) * static_cast<uint32_t>(kPools.unit)
               : 0;
}

bool anything_looked_for(uintptr_t pool) {
    for (uintptr_t at = pool; at < pool + kPools.pool_size; at += releases::kPage) {
        const auto* page = reinterpret_cast<const void*>(at);
        if (blocks::page_has_followed(page) || releases::near(page)) return true;
    }
    return false;
}

// The block may be one of another allocator, whose memory begins behind where a head would be. The
// head is read once the kernel has said that it can be, as this thread may block SIGSEGV. All of it
// must agree: then the pool is known from now on.
__attribute__((noinline)) uint32_t size_in_unknown_pool(const void* block) {
    const uintptr_t pool = pool_of(block);
    if (sandbox::entered() || !safe_read::readable(pool + kPools.class_offset)) return 0;
    const uint32_t size = size_by_head(pool);
    const uintptr_t behind_head = reinterpret_cast<uintptr_t>(block) - pool - kHead;
    if (size == 0 || safe_read::peek(pool + kLastBlockOffset, 0) != kPools.pool_size - size ||
        behind_head >= kPools.pool_size || behind_head % size > heap::Recent::kHeader)
        return 0;
    known_pools::add(pool, pool + kPools.pool_size);
    if (anything_looked_for(pool)) known_pools::never_quiet(pool);
    return size;
}

// Of a block that did not come through malloc; 0: it did not come from a pool either.
__attribute__((always_inline)) inline uint32_t size_in_pool(const void* block) {
    const uintptr_t pool = pool_of(block);
    if (__builtin_expect(known_pools::known(known_pools::state(pool)), 1))
        return size_by_head(pool);
    return size_in_unknown_pool(block);
}

// What an allocator does with small blocks.
enum class Small : uint8_t {
    none,     // nothing of its own: malloc has them
    layered,  // has them in pools, under headers or beside blocks of malloc's: debug, tracemalloc
    pools,    // has them in pools and nothing else: pymalloc itself
};

// Of a block of pymalloc's.
constexpr size_t small_size(size_t requested) {
    return (requested + kPools.unit - 1) & ~(kPools.unit - 1);
}

// The outermost domain is a block's: OBJ calls RAW for large ones, and RAW calls malloc.
// Also what stays when a recording ends, below an allocator that came later.
bool nested(const Local& local) {
    return __builtin_expect(local.domain != TG_DOMAIN_NATIVE, 0) || heap::passing();
}

// A block of an allocator that has come below the interpreter's since it was looked at.
__attribute__((noinline)) void meet_foreign() {
    if (recording() && !g.foreign_met.exchange(true)) spool::count(Loss::allocator_foreign);
}

// The size that a small block has; 0 if the hooks of malloc have counted it, or if it cannot be
// counted.
__attribute__((always_inline)) inline uint32_t size_if_small(const heap::Recent& through_malloc,
                                                             const void* block, size_t size) {
    if (size > kLargestSmall) {
        if (__builtin_expect(through_malloc.none(), 0)) meet_foreign();
        return 0;
    }
    if (!through_malloc.none() && through_malloc.hold(block)) return 0;
    const uint32_t found = size_in_pool(block);
    if (__builtin_expect(found == 0, 0)) meet_foreign();
    return found;
}

void release_waiting_arena(Local& local);

// What goes on in here is what millions of small blocks pay: each function is made for its domain
// and its layer, and whatever is rare is elsewhere.
template <int kDomain, int kLayer, Small kKind>
struct Wrapper {
    static constexpr bool kSmall = kKind != Small::none;

    static const tg_allocator& original() { return g.originals[kDomain][kLayer]; }

    // From pymalloc itself a small block has its size by what was asked for, and calls malloc only
    // if there is no room for an arena. The thread is in no domain meanwhile: what an arena takes
    // is not the block's.
    static void* allocate(void*, size_t size) {
        Local& local = t_local;
        if (kKind != Small::pools || __builtin_expect(size > kLargestSmall, 0) || nested(local))
            return allocate_any(size, __builtin_return_address(0));
        const tg_allocator& below = original();
        local.allocated.count = 0;
        void* block = below.allocate(below.context, size);
        Counters* counters = local.counters;
        if (__builtin_expect(!block || !local.allocated.none() || !counters, 0))
            return took_any(block, size, __builtin_return_address(0));
        const size_t occupied = small_size(size);
        if (__builtin_expect(heap::count_taken<kDomain>(counters, occupied), 0))
            return took_slowly(block, size, __builtin_return_address(0));
        return block;
    }

    // These return the block, so that what calls them keeps nothing.
    __attribute__((noinline)) static void* took_any(void* block, size_t size, const void* caller) {
        Local& local = t_local;
        local.domain = kDomain;
        if (block) took(local, block, size, caller);
        local.domain = TG_DOMAIN_NATIVE;
        return block;
    }

    __attribute__((noinline)) static void* took_slowly(void* block, size_t size,
                                                       const void* caller) {
        Local& local = t_local;
        local.domain = kDomain;
        heap::took_slowly(local.counters, block, small_size(size), size, caller);
        local.domain = TG_DOMAIN_NATIVE;
        return block;
    }

    __attribute__((noinline)) static void* allocate_any(size_t size, const void* caller) {
        const tg_allocator& below = original();
        Local& local = t_local;
        if (nested(local)) return below.allocate(below.context, size);
        local.domain = kDomain;
        local.allocated.count = 0;
        void* block = below.allocate(below.context, size);
        if (kSmall && __builtin_expect(block != nullptr, 1)) took(local, block, size, caller);
        local.domain = TG_DOMAIN_NATIVE;
        return block;
    }

    static void* allocate_zeroed(void*, size_t count, size_t size) {
        const tg_allocator& below = original();
        Local& local = t_local;
        if (nested(local)) return below.allocate_zeroed(below.context, count, size);
        local.domain = kDomain;
        local.allocated.count = 0;
        void* block = below.allocate_zeroed(below.context, count, size);
        if (kSmall && __builtin_expect(block != nullptr, 1))
            took(local, block, count * size, __builtin_return_address(0));
        local.domain = TG_DOMAIN_NATIVE;
        return block;
    }

    static void* reallocate(void*, void* block, size_t size) {
        const tg_allocator& below = original();
        Local& local = t_local;
        if (nested(local)) return below.reallocate(below.context, block, size);
        local.domain = kDomain;
        local.allocated.count = 0;
        local.freed.count = 0;
        const bool look = kSmall && block;
        uint32_t followed = look && blocks::maybe_followed(block) ? blocks::claim(block) : kNone;
        if (__builtin_expect(followed != kNone, 0)) {
            local.claim = followed;
            local.claimed = block;
        }
        void* moved = below.reallocate(below.context, block, size);
        // Unless the block was in a pool, realloc has taken the claim and settled all.
        if (__builtin_expect(followed != kNone, 0) && !local.take_claim(block, &followed))
            followed = kNone;
        if (moved && kSmall) {
            local.moved_ns = blocks::settle(followed);
            if (look) end_release(local, block);
            took(local, moved, size, __builtin_return_address(0));
            local.moved_ns = 0;
        } else {
            blocks::restore(followed, block);
        }
        local.domain = TG_DOMAIN_NATIVE;
        return moved;
    }

    // A block in a pool is counted while the pool's head still has its size, and then released:
    // that calls nothing of ours but, at times, release_arena.
    static void release(void*, void* block) {
        const uintptr_t pool = pool_of(block);
        Local& local = t_local;
        // Behind the end of a recording no pool is known.
        const bool outermost = __builtin_expect(local.domain == TG_DOMAIN_NATIVE, 1);
        if (kKind != Small::pools || !outermost || !tells_nothing(pool, block))
            return release_any(block);
        const uint32_t size = size_by_head(pool);
        Counters* counters = local.counters;
        if (__builtin_expect(size == 0 || !counters, 0)) return release_any(block);
        if (__builtin_expect(heap::count_given<kDomain>(counters, size), 0))
            return release_slowly(block);
        const tg_allocator& below = original();
        below.release(below.context, block);
    }

    // The release of a block in this pool is to be counted, and nothing else.
    __attribute__((always_inline)) static bool tells_nothing(uintptr_t pool, const void* block) {
        const uint8_t state = known_pools::state(pool);
        if (__builtin_expect(known_pools::quiet(state), 1)) return true;
        return known_pools::known(state) && !blocks::maybe_followed(block) &&
               !(releases::any() && releases::near(block));
    }

    __attribute__((noinline)) static void release_slowly(void* block) {
        Local& local = t_local;
        local.domain = kDomain;
        heap::gave_slowly(local.counters);
        local.domain = TG_DOMAIN_NATIVE;
        const tg_allocator& below = original();
        below.release(below.context, block);
    }

    __attribute__((noinline)) static void release_any(void* block) {
        const tg_allocator& below = original();
        Local& local = t_local;
        if (nested(local) || !block) return below.release(below.context, block);
        local.domain = kDomain;
        if (kSmall) {
            heap::gives(block);
            local.freed.count = 0;
        }
        below.release(below.context, block);
        if (kSmall) end_release(local, block);
        local.domain = TG_DOMAIN_NATIVE;
    }

  private:
    __attribute__((always_inline)) static void took(Local& local, const void* block, size_t size,
                                                    const void* caller) {
        if (const uint32_t occupied = size_if_small(local.allocated, block, size); occupied != 0)
            heap::took<kDomain>(local, block, occupied, size, caller);
    }

    __attribute__((always_inline)) static void gave_small(Local& local, const void* block) {
        const uint32_t size = size_in_pool(block);
        if (__builtin_expect(size == 0, 0)) return;
        releases::tell(block, size);
        heap::gave<kDomain>(local, size);
    }

    // A block's size is still in the head of its pool: an arena that goes with its last block goes
    // when we have looked.
    __attribute__((noinline)) static void end_release_slowly(Local& local, const void* block) {
        if (!local.freed.hold(block)) gave_small(local, block);
        if (local.waiting_arena) release_waiting_arena(local);
    }

    __attribute__((always_inline)) static void end_release(Local& local, const void* block) {
        if (__builtin_expect(local.freed.count != 0, 0)) {
            if (local.freed.only(block)) return;  // free has counted it
            return end_release_slowly(local, block);
        }
        gave_small(local, block);
    }
};

// A block that did not go through free was in a pool, whose arena may be gone by now.
void tell_small(const Local& local, const void* block) {
    if (local.freed.hold(block)) return;
    if (const uint32_t size = size_in_unknown_pool(block); size != 0) releases::tell(block, size);
}

template <int kDomain>
__attribute__((noinline)) void release_and_tell(void* block) {
    t_local.freed.count = 0;
    g.told[kDomain].release(g.told[kDomain].context, block);
    tell_small(t_local, block);
}

template <int kDomain>
void release_told(void*, void* block) {
    if (releases::near(block)) return release_and_tell<kDomain>(block);
    g.told[kDomain].release(g.told[kDomain].context, block);
}

template <int kDomain>
void* reallocate_told(void*, void* block, size_t size) {
    t_local.freed.count = 0;
    void* moved = g.told[kDomain].reallocate(g.told[kDomain].context, block, size);
    if (moved && releases::near(block)) tell_small(t_local, block);
    return moved;
}

template <int kDomain>
bool wrap_told(const tg_allocator& original, tg_allocator* wrapper) {
    if (g.told[kDomain].release) return false;
    g.told[kDomain] = original;
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
    const auto begin = reinterpret_cast<uintptr_t>(arena);
    if (arena && size == g.arena_size && !sandbox::entered() && !heap::passing())
        known_pools::add(begin, begin + size);
    return arena;
}

void give_arena_back(void* arena, size_t size) {
    const auto begin = reinterpret_cast<uintptr_t>(arena);
    known_pools::remove(begin, begin + size);
    g.arenas.release(g.arenas.context, arena, size);
}

void release_waiting_arena(Local& local) {
    give_arena_back(local.waiting_arena, g.arena_size);
    local.waiting_arena = nullptr;
}

void release_arena(void*, void* arena, size_t size) {
    Local& local = t_local;
    const bool in_wrapper = local.domain != TG_DOMAIN_NATIVE;
    if (size != g.arena_size || !in_wrapper || local.waiting_arena)
        return give_arena_back(arena, size);
    local.waiting_arena = arena;
    local.freed.count |= heap::Recent::kLook;
}

template <int kDomain, Small kKind, int kLayer = 0>
tg_allocator around(int layer, void* context) {
    using Made = Wrapper<kDomain, kLayer, kKind>;
    if constexpr (kLayer + 1 < kLayers)
        if (layer > kLayer) return around<kDomain, kKind, kLayer + 1>(layer, context);
    return {context, Made::allocate, Made::allocate_zeroed, Made::reallocate, Made::release};
}

template <int kDomain>
tg_allocator around(Small kind, int layer, void* context) {
    switch (kind) {
        case Small::none:
            break;
        case Small::layered:
            return around<kDomain, Small::layered>(layer, context);
        case Small::pools:
            return around<kDomain, Small::pools>(layer, context);
    }
    return around<kDomain, Small::none>(layer, context);
}

tg_allocator around(int domain, Small kind, int layer, void* context) {
    if (domain == TG_DOMAIN_RAW) return around<TG_DOMAIN_RAW, Small::none>(layer, context);
    return domain == TG_DOMAIN_MEM ? around<TG_DOMAIN_MEM>(kind, layer, context)
                                   : around<TG_DOMAIN_OBJ>(kind, layer, context);
}

// Whether it is our wrapper of this layer, whatever it does with small blocks.
bool is_layer(int domain, int layer, const tg_allocator& allocator) {
    constexpr Small kKinds[] = {Small::none, Small::layered, Small::pools};
    for (const Small kind : kKinds)
        if (allocator.release == around(domain, kind, layer, nullptr).release) return true;
    return false;
}

// Whether a block of this size comes out of a pool of its class, and no block of malloc's with it.
// Tried twice: once in a while another arena is needed.
bool is_from_pool(const tg_allocator& allocator, size_t size) {
    for (int attempt = 0; attempt < 2; ++attempt) {
        t_local.allocated.count = 0;
        void* block = allocator.allocate(allocator.context, size);
        if (!block) return false;
        const bool alone = t_local.allocated.none();
        const bool fits = alone && size_in_pool(block) == small_size(size);
        allocator.release(allocator.context, block);
        if (alone) return fits;
    }
    return false;
}

// Of an allocator with pools. A layer above pymalloc makes blocks larger, or asks malloc for more.
Small kind_of(const tg_allocator& allocator) {
    constexpr size_t kSizes[] = {1, 16, 48, 100, 256, kLargestSmall};
    for (const size_t size : kSizes)
        if (!is_from_pool(allocator, size)) return Small::layered;
    return Small::pools;
}

}  // namespace

bool wrap(int domain, const tg_allocator& original, const tg_pools* pools, tg_allocator* wrapper) {
    if (g.used[domain] >= kLayers || (pools && !known(*pools))) return false;
    heap::keep_counting();
    // One that has stayed is the outermost again: it does what it did.
    for (int layer = 0; layer < g.kept[domain]; ++layer) {
        if (!is_layer(domain, layer, original)) continue;
        *wrapper = original;
        return true;
    }
    const int layer = g.used[domain]++;
    g.originals[domain][layer] = original;
    *wrapper = around(domain, pools ? kind_of(original) : Small::none, layer, original.context);
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
    for (int domain = 0; domain < TG_DOMAINS; ++domain) {
        if (allocators) g.used[domain] = g.kept[domain];
        g.kept[domain] = g.used[domain];
    }
    if (arenas) g.arenas = {};
    known_pools::forget();  // arenas come and go unseen now
    g.foreign_met.store(false);
}

bool known(const tg_pools& pools) {
    return pools.pool_size == kPools.pool_size && pools.class_offset == kPools.class_offset &&
           pools.unit == kPools.unit && pools.classes == kPools.classes;
}

}  // namespace tachograph::domains
