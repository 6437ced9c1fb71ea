// Hooks of malloc and its relatives. The rule: the program gets the very block that it
// would have got, and the same errno.
//
// A block is counted by what it occupies (malloc_usable_size), so that what is counted when it is
// freed is what was counted when it was allocated. It is counted after it was got and before it is
// given back: in between no other thread has it.
#include "hooks/interposed.h"
#include "memory/heap.h"
#include "memory/libc_allocators.h"
#include "memory/releases.h"

#include <cerrno>
#include <cstdint>

#define TG_CALLER __builtin_return_address(0)

using namespace tachograph;
using libc_allocators::g_real;

namespace {

// What malloc and free pay: no call but those of what is behind them.
#define TG_INLINE inline __attribute__((always_inline))

TG_INLINE size_t occupied(void* block) {
    return __builtin_expect(libc_allocators::g_libc_chunks, 1) ? libc_allocators::chunk_size(block)
                                                               : g_real.malloc_usable_size(block);
}

// Blocks of this size on may be mappings of their own.
constexpr size_t kLeastMapping = 64 * 1024;

// What of a block of `size` bytes is a mapping of its own: all or nothing.
TG_INLINE int64_t mapping_of(const void* block, size_t size) {
    return __builtin_expect(size >= kLeastMapping, 0) && libc_allocators::is_mapping(block)
               ? static_cast<int64_t>(size)
               : 0;
}

TG_INLINE void count_mapping(int64_t bytes) {
    if (__builtin_expect(bytes != 0, 0))
        heap::g_mapped_chunks.fetch_add(bytes, std::memory_order_relaxed);
}

TG_INLINE void* counted(void* block, size_t requested, const void* caller) {
    if (__builtin_expect(block != nullptr, 1) && !libc_allocators::lent(block)) {
        heap::Local& local = heap::t_local;
        local.allocated.add(block);
        const size_t size = occupied(block);
        count_mapping(mapping_of(block, size));
        heap::took(local, block, size, requested, caller);
    }
    return block;
}

void* move_lent(void* block, size_t size, const void* caller) {
    void* moved = counted(g_real.malloc(size), size, caller);
    if (!moved) return nullptr;
    const size_t old = libc_allocators::lent_size(block);
    __builtin_memcpy(moved, block, old < size ? old : size);
    return moved;
}

void* resize(void* block, size_t size, const void* caller) {
    if (!block) return counted(g_real.malloc(size), size, caller);
    if (libc_allocators::lent(block)) return move_lent(block, size, caller);
    heap::Local& local = heap::t_local;
    const size_t old = occupied(block);
    const int64_t old_mapping = mapping_of(block, old);
    releases::tell(block, old);
    uint32_t followed = kNone;
    if (!local.take_claim(block, &followed) && blocks::maybe_followed(block))
        followed = blocks::claim(block);
    local.freed.add(block);
    void* moved = g_real.realloc(block, size);
    if (!moved && size != 0) {
        blocks::restore(followed, block);
        return nullptr;
    }
    const int error = errno;
    count_mapping(-old_mapping);
    if (moved) {
        local.allocated.add(moved);
        const size_t now = occupied(moved);
        count_mapping(mapping_of(moved, now));
        heap::moved(local, followed, block, old, moved, now, size, caller);
    } else {
        blocks::settle(followed);
        heap::gave(local, old);
    }
    errno = error;
    return moved;
}

// Apart from the functions below, so that those save no registers while the hooks are off.
__attribute__((noinline)) void* counted_malloc(size_t size, const void* caller) {
    return counted(g_real.malloc(size), size, caller);
}

__attribute__((noinline)) void counted_free(void* block) {
    heap::Local& local = heap::t_local;
    const size_t size = occupied(block);
    count_mapping(-mapping_of(block, size));
    releases::tell(block, size);
    heap::gives(block);
    local.freed.add(block);
    heap::gave(local, size);
    g_real.free(block);
}

TG_INLINE void release(void* block) {
    if (heap::releases_pass()) return g_real.free(block);
    if (!block || libc_allocators::lent(block)) return;
    counted_free(block);
}

void release_by_name(void* block) {
    if (libc_allocators::g_programs.free) return libc_allocators::g_programs.free(block);
    release(block);
}

}  // namespace

TG_EXPORT void* malloc(size_t size) {
    if (heap::passing()) return g_real.malloc(size);
    return counted_malloc(size, TG_CALLER);
}

TG_EXPORT void* calloc(size_t count, size_t size) {
    if (heap::passing()) return g_real.calloc(count, size);
    return counted(g_real.calloc(count, size), count * size, TG_CALLER);
}

TG_EXPORT void* realloc(void* block, size_t size) {
    if (heap::releases_pass()) return g_real.realloc(block, size);
    return resize(block, size, TG_CALLER);
}

// As the C library's, it calls realloc by name: that of an allocator in the program, if it has one.
TG_EXPORT void* reallocarray(void* block, size_t count, size_t size) {
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole)) {
        errno = ENOMEM;
        return nullptr;
    }
    if (libc_allocators::g_programs.realloc)
        return libc_allocators::g_programs.realloc(block, whole);
    if (heap::releases_pass()) return g_real.realloc(block, whole);
    return resize(block, whole, TG_CALLER);
}

TG_EXPORT void free(void* block) { release(block); }
TG_EXPORT void free_sized(void* block, size_t) { release_by_name(block); }
TG_EXPORT void free_aligned_sized(void* block, size_t, size_t) { release_by_name(block); }

TG_EXPORT int posix_memalign(void** place, size_t alignment, size_t size) {
    const int failed = g_real.posix_memalign(place, alignment, size);
    if (failed == 0) counted(*place, size, TG_CALLER);
    return failed;
}

TG_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
    return counted(g_real.aligned_alloc(alignment, size), size, TG_CALLER);
}

TG_EXPORT void* memalign(size_t alignment, size_t size) {
    return counted(g_real.memalign(alignment, size), size, TG_CALLER);
}

TG_EXPORT void* valloc(size_t size) { return counted(g_real.valloc(size), size, TG_CALLER); }
TG_EXPORT void* pvalloc(size_t size) { return counted(g_real.pvalloc(size), size, TG_CALLER); }
