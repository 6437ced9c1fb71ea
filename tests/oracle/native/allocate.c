/*
 * What the oracle's memory programs need from outside Python: blocks of every form of allocation,
 * on threads that Python knows and on ones that it does not, with counts of its own: bytes that the
 * blocks occupy by malloc_usable_size. Valid as C and as C++, as burn.c is.
 */
#define _GNU_SOURCE 1
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
#define EXPORT extern "C" __attribute__((visibility("default")))
#else
#define EXPORT __attribute__((visibility("default")))
#endif

static int64_t allocated;
static int64_t freed;

static void* in(void* block) {
    if (!block) abort();
    __atomic_fetch_add(&allocated, (int64_t)malloc_usable_size(block), __ATOMIC_RELAXED);
    return block;
}

static void* out(void* block) {
    __atomic_fetch_add(&freed, (int64_t)malloc_usable_size(block), __ATOMIC_RELAXED);
    return block;
}

/* Bytes that this library has allocated, and freed, since it was loaded. */
EXPORT int64_t oracle_allocated(void) { return __atomic_load_n(&allocated, __ATOMIC_RELAXED); }

EXPORT int64_t oracle_freed(void) { return __atomic_load_n(&freed, __ATOMIC_RELAXED); }

EXPORT void* oracle_malloc(size_t size) { return in(malloc(size)); }

EXPORT void oracle_free(void* block) {
    if (block) free(out(block));
}

/* The old block is freed and a new one allocated, whether or not the block stays where it is. */
EXPORT void* oracle_realloc(void* block, size_t size) {
    if (block) out(block);
    return in(realloc(block, size));
}

/* Allocates and loses the pointers: what a library does that forgets. */
EXPORT void oracle_forget(int count, size_t size) {
    for (int i = 0; i < count; i++) *(volatile char*)oracle_malloc(size) = 1;
}

static uint64_t next_random(uint64_t* state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* One block that is resized `steps` times to sizes between 1 and `most`, and freed at the end. */
EXPORT void oracle_resize(uint64_t seed, int steps, size_t most) {
    void* block = NULL;
    for (int i = 0; i < steps; i++) block = oracle_realloc(block, 1 + next_random(&seed) % most);
    oracle_free(block);
}

/* One block that grows to `size` bytes in steps of a quarter, as a vector does. The block. */
EXPORT void* oracle_grow(size_t size) {
    void* block = NULL;
    for (size_t now = 1000; now < size; now += now / 4) block = oracle_realloc(block, now);
    return oracle_realloc(block, size);
}

/* `count` blocks of every form of allocation that the C library has, all freed before it returns.
 */
EXPORT void oracle_forms(int count, size_t size) {
    enum { FORMS = 9 };
    void** blocks = (void**)in(calloc((size_t)count * FORMS, sizeof *blocks));
    void** next = blocks;
    for (int i = 0; i < count; i++) {
        void* aligned = NULL;
        if (posix_memalign(&aligned, 64, size)) abort();
        *next++ = in(aligned);
        *next++ = in(malloc(size));
        *next++ = in(calloc(2, size / 2));
        *next++ = in(realloc(NULL, size));
        *next++ = in(reallocarray(NULL, 4, size / 4));
        *next++ = in(aligned_alloc(256, size / 256 * 256 + 256));
        *next++ = in(memalign(4096, size));
        *next++ = in(valloc(size));
        *next++ = in(pvalloc(size));
    }
    for (int i = 0; i < count * FORMS; i++) oracle_free(blocks[i]);
    oracle_free(blocks);
}

struct worker {
    pthread_t thread;
    sem_t ready;
    sem_t go;
    size_t size;
    int count;
    int frees;
    int tid;
    void** blocks;
};

static void free_blocks(struct worker* self) {
    for (int i = 0; i < self->count; i++) oracle_free(self->blocks[i]);
}

static void* work(void* argument) {
    struct worker* self = (struct worker*)argument;
    self->tid = (int)syscall(SYS_gettid);
    for (int i = 0; i < self->count; i++) self->blocks[i] = oracle_malloc(self->size);
    sem_post(&self->ready);
    sem_wait(&self->go);
    if (self->frees) free_blocks(self);
    return NULL;
}

/* A thread that never meets Python allocates `count` blocks; they are there when this returns. */
EXPORT void* oracle_worker_start(int count, size_t size) {
    struct worker* self = (struct worker*)in(calloc(1, sizeof *self));
    self->blocks = (void**)in(calloc((size_t)count, sizeof *self->blocks));
    self->size = size, self->count = count;
    sem_init(&self->ready, 0, 0), sem_init(&self->go, 0, 0);
    if (pthread_create(&self->thread, NULL, work, self)) abort();
    sem_wait(&self->ready);
    return self;
}

/* The system's id of the thread. */
EXPORT int oracle_worker_tid(void* handle) { return ((struct worker*)handle)->tid; }

/* Ends it. Its blocks are freed by itself if `by_itself`, else by the caller's thread. */
EXPORT void oracle_worker_end(void* handle, int by_itself) {
    struct worker* self = (struct worker*)handle;
    self->frees = by_itself;
    sem_post(&self->go);
    pthread_join(self->thread, NULL);
    if (!by_itself) free_blocks(self);
    oracle_free(self->blocks);
    oracle_free(self);
}

/* Address space of an allocator of its own: reserved, and usable without another call. */
EXPORT void* oracle_reserve(size_t size) {
    void* base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) abort();
    return base;
}

/* Touches each page of some of it; between two pages it uses malloc so many times, and takes a
 * while. The bytes. */
EXPORT int64_t oracle_touch(char* base, size_t size, int mallocs) {
    for (size_t at = 0; at < size; at += 4096) {
        base[at] = 1;
        for (int i = 0; i < mallocs; i++) {
            void* volatile block = malloc(100);
            free(block);
        }
        for (volatile int i = 0; i < 2000; i++) continue;
    }
    return (int64_t)size;
}

struct touching {
    char* base;
    size_t size;
};

static void* touch_all(void* argument) {
    struct touching* all = (struct touching*)argument;
    oracle_touch(all->base, all->size, 0);
    return NULL;
}

/* The same by a thread that never meets Python; the caller waits for it. */
EXPORT int64_t oracle_touch_beside(char* base, size_t size) {
    struct touching all = {base, size};
    pthread_t thread;
    if (pthread_create(&thread, NULL, touch_all, &all)) abort();
    pthread_join(thread, NULL);
    return (int64_t)size;
}

static double monotonic_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Touches each page of some of it, at an even pace, in about so many seconds. The bytes. */
EXPORT int64_t oracle_touch_evenly(char* base, size_t size, double seconds) {
    const double begin = monotonic_s();
    for (size_t at = 0; at < size; at += 4096) {
        while (monotonic_s() - begin < seconds * (double)at / (double)size) continue;
        base[at] = 1;
    }
    return (int64_t)size;
}
