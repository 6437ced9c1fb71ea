// The functions behind ours: the next ones of their names in the order of loading.
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <cstdint>

namespace tachograph::libc_allocators {

struct Functions {
    void* (*malloc)(size_t);
    void* (*calloc)(size_t, size_t);
    void* (*realloc)(void*, size_t);
    void (*free)(void*);
    int (*posix_memalign)(void**, size_t, size_t);
    void* (*aligned_alloc)(size_t, size_t);
    void* (*memalign)(size_t, size_t);
    void* (*valloc)(size_t);
    void* (*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void*);
    void* (*mmap)(void*, size_t, int, int, int, off_t);
    int (*munmap)(void*, size_t);
    void* (*mremap)(void*, size_t, size_t, int, void*);
    int (*madvise)(void*, size_t, int);
};

// Until they are looked up, they are functions that look them up.
extern Functions g_real __attribute__((visibility("hidden")));

// Whether blocks are glibc's own, with their size in front of them; tried out, not assumed.
extern bool g_libc_chunks __attribute__((visibility("hidden")));

// Whether such a block is a mapping of its own.
inline bool is_mapping(const void* block) {
    constexpr size_t kMapped = 2;
    return g_libc_chunks && (static_cast<const size_t*>(block)[-1] & kMapped) != 0;
}

// What malloc_usable_size says of such a block that is in use, without the call.
inline size_t chunk_size(const void* block) {
    const size_t head = static_cast<const size_t*>(block)[-1];
    constexpr size_t kMapped = 2;  // a mapping of its own: so large that the call costs nothing
    if (__builtin_expect((head & kMapped) != 0, 0))
        return g_real.malloc_usable_size(const_cast<void*>(block));
    return (head & ~size_t{7}) - sizeof(size_t);
}

// What the program itself has in front of ours, as an allocator that is part of it: null where
// calls by name come to ours. Blocks that the program passes to a function that it has not got
// itself, and we have, are of that allocator then.
struct Programs {
    void* (*realloc)(void*, size_t) = nullptr;
    void (*free)(void*) = nullptr;
};
extern Programs g_programs __attribute__((visibility("hidden")));

// Looking up may itself ask for memory: it gets some of ours, which is never given back.
inline constexpr size_t kLentSize = 16 * 1024;
inline constexpr size_t kLentAlignment = 16;
extern uint8_t g_lent_pool[kLentSize] __attribute__((visibility("hidden")));
inline bool lent(const void* block) {
    return reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(g_lent_pool) <
           kLentSize;
}
size_t lent_size(const void* block);

}  // namespace tachograph::libc_allocators
