#include "memory.h"

#include "compat.h"

#include <Python.h>

#include <link.h>
#include <cstdlib>
#include <cstring>

namespace tachograph {
namespace {

struct Domain {
    PyMemAllocatorDomain theirs;
    tg_domain ours;
};
constexpr Domain kDomainsOfPython[] = {{PYMEM_DOMAIN_RAW, TG_DOMAIN_RAW},
                                       {PYMEM_DOMAIN_MEM, TG_DOMAIN_MEM},
                                       {PYMEM_DOMAIN_OBJ, TG_DOMAIN_OBJ}};

enum class Small { pools, malloc, unknown };

// Asked, not looked up by name: a debug layer or tracemalloc may lie above pymalloc.
Small kind_of_small_blocks(const tg_api* api) {
    if (!api->knows_pools(&tg_small_blocks)) return Small::unknown;
    constexpr size_t kSizes[] = {1, 40, 100, 250, 400};
    constexpr size_t kLayer = 64;  // what a debug layer may add
    const tg_pools& pools = tg_small_blocks;
    Small kind = Small::unknown;
    for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i) {
        void* block = PyObject_Malloc(kSizes[i]);
        if (!block) return Small::unknown;
        Small found = Small::unknown;
        const auto pool = reinterpret_cast<uintptr_t>(block) & ~(pools.pool_size - 1);
        uint32_t used = 0;
        uint32_t size_class = 0;
        if (api->saw_block(block)) {
            found = Small::malloc;
        } else if (api->read(&used, reinterpret_cast<const void*>(pool), sizeof used) &&
                   api->read(&size_class, reinterpret_cast<const void*>(pool + pools.class_offset),
                             sizeof size_class) &&
                   size_class < pools.classes) {
            const size_t size = (size_t{size_class} + 1) * pools.unit;
            if (used > 0 && used * size <= pools.pool_size && size >= kSizes[i] &&
                size < kSizes[i] + pools.unit + kLayer)
                found = Small::pools;
        }
        PyObject_Free(block);
        if (i > 0 && found != kind) return Small::unknown;
        kind = found;
    }
    return kind;
}

// What was put around the interpreter's allocators, and around what.
struct Watched {
    PyMemAllocatorEx ours{};
    PyMemAllocatorEx theirs{};
    bool wrapped = false;
};
Watched g_watched[sizeof kDomainsOfPython / sizeof kDomainsOfPython[0]];
PyObjectArenaAllocator g_our_arenas{};
PyObjectArenaAllocator g_their_arenas{};

bool same(const PyMemAllocatorEx& a, const PyMemAllocatorEx& b) {
    return a.ctx == b.ctx && a.malloc == b.malloc && a.free == b.free;
}

bool native_blocks_are_seen(const tg_api* api) {
    // Not PyMem_RawMalloc: from 3.15 on it is not malloc where PYTHONMALLOC says mimalloc.
    void* block = calloc(1, 5000);
    const bool seen = block && api->saw_block(block);
    free(block);
    return seen;
}

// Where they are not, one would be taken for a block of a pool, whose head is then read.
bool large_blocks_are_seen(const tg_api* api) {
    void* block = PyObject_Malloc(5000);
    const bool seen = block && api->saw_block(block);
    PyObject_Free(block);
    return seen;
}

// Scalene's library gives blocks a head of its own, and calls the interpreter's allocator from its
// own functions again: with any wrapper around that, it calls itself until the stack is full, also
// under tracemalloc and with PYTHONMALLOC=debug.
bool stands_no_wrapper() {
    return dl_iterate_phdr(
               [](dl_phdr_info* info, size_t, void*) {
                   const char* name = strrchr(info->dlpi_name, '/');
                   name = name ? name + 1 : info->dlpi_name;
                   return strncmp(name, "libscalene", strlen("libscalene")) == 0 ? 1 : 0;
               },
               nullptr) != 0;
}

}  // namespace

static_assert(sizeof(PyMemAllocatorEx) == sizeof(tg_allocator));
static_assert(sizeof(PyObjectArenaAllocator) == sizeof(tg_arena_allocator));

bool watch_memory(const tg_api* api, bool alone) {
    if (stands_no_wrapper()) {
        api->count_loss(TG_LOSS_ALLOCATORS_LEFT_ALONE);
        api->begin_memory(nullptr, 0);
        return false;
    }
    if (!native_blocks_are_seen(api)) {
        // Then no block can be told from a small one either.
        api->count_loss(TG_LOSS_NATIVE_UNSEEN);
        api->begin_memory(nullptr, 0);
        return false;
    }
    const Small small = large_blocks_are_seen(api) ? kind_of_small_blocks(api) : Small::unknown;
    if (small == Small::unknown) api->count_loss(TG_LOSS_ALLOCATOR_UNSEEN);
    const tg_pools* pools = small == Small::pools ? &tg_small_blocks : nullptr;
    if (pools) {
        PyObjectArenaAllocator arenas;
        PyObject_GetArenaAllocator(&arenas);
        tg_arena_allocator original;
        memcpy(&original, &arenas, sizeof original);
        tg_arena_allocator wrapper;
        if (api->wrap_arenas(&original, pools, &wrapper)) {
            g_their_arenas = arenas;
            memcpy(&arenas, &wrapper, sizeof arenas);
            g_our_arenas = arenas;
            PyObject_SetArenaAllocator(&arenas);
        }
    }
    for (size_t i = 0; i < sizeof kDomainsOfPython / sizeof kDomainsOfPython[0]; ++i) {
        const Domain& domain = kDomainsOfPython[i];
        // Used without the GIL: where other threads run, it is not changed under them.
        if (domain.theirs == PYMEM_DOMAIN_RAW && !alone) continue;
        PyMemAllocatorEx allocator;
        PyMem_GetAllocator(domain.theirs, &allocator);
        tg_allocator original;
        memcpy(&original, &allocator, sizeof original);
        tg_allocator wrapper;
        const bool raw = domain.ours == TG_DOMAIN_RAW;
        if (!api->wrap_allocator(domain.ours, &original, raw ? nullptr : pools, &wrapper)) {
            api->count_loss(TG_LOSS_ALLOCATOR_UNSEEN);
            continue;
        }
        g_watched[i].theirs = allocator;
        memcpy(&allocator, &wrapper, sizeof allocator);
        g_watched[i].ours = allocator;
        g_watched[i].wrapped = true;
        PyMem_SetAllocator(domain.theirs, &allocator);
    }
    api->begin_memory(pools, small != Small::unknown ? 1 : 0);
    return small != Small::unknown;
}

void unwatch_memory(const tg_api* api) {
    bool all = true;
    for (size_t i = 0; i < sizeof g_watched / sizeof g_watched[0]; ++i) {
        if (!g_watched[i].wrapped) continue;
        PyMemAllocatorEx now;
        PyMem_GetAllocator(kDomainsOfPython[i].theirs, &now);
        g_watched[i].wrapped = false;
        // One that was put around ours (tracemalloc's, for example) goes on calling it.
        if (same(now, g_watched[i].ours))
            PyMem_SetAllocator(kDomainsOfPython[i].theirs, &g_watched[i].theirs);
        else
            all = false;
    }
    PyObjectArenaAllocator arenas;
    PyObject_GetArenaAllocator(&arenas);
    const bool ours = g_our_arenas.alloc && arenas.alloc == g_our_arenas.alloc;
    if (ours) PyObject_SetArenaAllocator(&g_their_arenas);
    g_our_arenas = {};
    api->unwrapped(all ? 1 : 0, ours ? 1 : 0);
}

void watch_releases(const tg_api* api) {
    // Blocks of malloc's are never told from others here, but hardly ever look like one of a pool.
    if (stands_no_wrapper() || kind_of_small_blocks(api) != Small::pools) return;
    for (const Domain& domain : kDomainsOfPython) {
        PyMemAllocatorEx allocator;
        PyMem_GetAllocator(domain.theirs, &allocator);
        tg_allocator original;
        memcpy(&original, &allocator, sizeof original);
        tg_allocator wrapper;
        if (!api->wrap_releases(domain.ours, &original, &wrapper)) continue;
        memcpy(&allocator, &wrapper, sizeof allocator);
        PyMem_SetAllocator(domain.theirs, &allocator);
    }
}

void check_memory(const tg_api* api) {
    const int64_t before = api->own_allocated(TG_DOMAIN_OBJ);
    if (before < 0) return;
    void* block = PyObject_Malloc(1000);  // through malloc, so whatever small blocks are
    if (api->own_allocated(TG_DOMAIN_OBJ) == before) api->count_loss(TG_LOSS_ALLOCATOR_REPLACED);
    PyObject_Free(block);
}

}  // namespace tachograph
