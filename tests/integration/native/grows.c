/* A library that changes the size of blocks, which its caller has allocated. */
#define _GNU_SOURCE
#include <stdlib.h>

void* grow(void* block, size_t count, size_t size) { return reallocarray(block, count, size); }
