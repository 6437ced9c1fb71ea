// What C and C++ ask of the processor itself.
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

// Where the calling thread's block of thread-local variables is.
static inline char* tg_thread_pointer(void) {
    char* pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
    return pointer;
}

// Where that block says which blocks the thread has for libraries (the C library's dtv).
enum { TG_THREAD_BLOCKS = 0 };

// A counter that goes on evenly.
static inline uint64_t tg_ticks(void) {
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
}

// Of addresses of a program, unless it asks for more.
enum { TG_ADDRESS_BITS = 48 };

// Relocations that hold the address of a function of another library.
enum { TG_JUMP_SLOT = R_AARCH64_JUMP_SLOT, TG_GLOBAL_ADDRESS = R_AARCH64_GLOB_DAT };

// Programs for this processor, and the loader of those that our library can be loaded by.
enum { TG_MACHINE = EM_AARCH64 };
#define TG_LOADER "ld-linux-aarch64.so"
