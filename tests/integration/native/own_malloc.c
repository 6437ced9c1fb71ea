/*
 * A program with an allocator of its own, as jemalloc is linked into one: it defines malloc and its
 * relatives, but not reallocarray. That is called by a library (argv[1]), or, where the program
 * embeds Python, by the program itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef EMBEDS
#include <Python.h>
#endif

enum { HEADER = 16 };
static char pool[256 << 20] __attribute__((aligned(16)));
static size_t used;

void* malloc(size_t size) {
    const size_t whole = (size + HEADER + 15) & ~(size_t)15;
    const size_t at = __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);
    if (at + whole > sizeof pool) return NULL;
    memcpy(pool + at, &size, sizeof size);
    return pool + at + HEADER;
}
void free(void* block) { (void)block; }
void* calloc(size_t count, size_t size) { return malloc(count * size); }
void* realloc(void* block, size_t size) {
    void* moved = malloc(size);
    size_t old = 0;
    if (block) memcpy(&old, (char*)block - HEADER, sizeof old);
    if (moved && block) memcpy(moved, block, old < size ? old : size);
    return moved;
}

int main(int argc, char** argv) {
    void* (*grow)(void*, size_t, size_t) = reallocarray;
#ifdef EMBEDS
    (void)argc, (void)argv;
    Py_InitializeEx(0);
    if (PyRun_SimpleString("kept = [bytearray(5000) for _ in range(100)]") != 0) return 3;
#else
    void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) return 2;
    grow = (void* (*)(void*, size_t, size_t))dlsym(library, "grow");
#endif
    char* block = malloc(100);
    memset(block, 7, 100);
    block = grow(block, 50, 100);
    printf("grown in the program's own pool: %d\n",
           block >= pool && block < pool + sizeof pool && block[99] == 7);
    return 0;
}
