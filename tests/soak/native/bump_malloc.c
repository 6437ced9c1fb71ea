// An allocator that never gives anything back, to be preloaded: all of malloc's family in one
// mapping.
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static const size_t kSize = (size_t)16 << 30;
static _Atomic(uintptr_t) g_begin;
static atomic_size_t g_used;

void* memalign(size_t alignment, size_t size) {
    uintptr_t begin = atomic_load(&g_begin);
    if (begin == 0) {
        void* made = mmap(0, kSize, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) return 0;
        if (atomic_compare_exchange_strong(&g_begin, &begin, (uintptr_t)made))
            begin = (uintptr_t)made;
    }
    if (alignment < 16) alignment = 16;
    const size_t needs = ((size + 15) & ~(size_t)15) + alignment + 16;
    const uintptr_t at = begin + atomic_fetch_add(&g_used, needs);
    if (at + needs > begin + kSize) return 0;
    const uintptr_t block = (at + 16 + alignment - 1) & ~(uintptr_t)(alignment - 1);
    ((size_t*)block)[-1] = size;
    return (void*)block;
}
void* malloc(size_t size) { return memalign(16, size); }
void* calloc(size_t count, size_t size) { return malloc(count * size); }  // its pages are zeros
void free(void* block) { (void)block; }
size_t malloc_usable_size(void* block) { return block ? ((size_t*)block)[-1] : 0; }
void* realloc(void* block, size_t size) {
    void* other = malloc(size);
    const size_t before = malloc_usable_size(block);
    if (other && block) memcpy(other, block, before < size ? before : size);
    return other;
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** to, size_t alignment, size_t size) {
    *to = memalign(alignment, size);
    return *to ? 0 : ENOMEM;
}
