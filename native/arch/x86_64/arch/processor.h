// What C and C++ ask of the processor itself.
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

// Where the calling thread's block of thread-local variables is.
static inline char* tg_thread_pointer(void) {
    char* pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

// Where that block says which blocks the thread has for libraries (the C library's dtv).
enum { TG_THREAD_BLOCKS = sizeof(void*) };

// A counter that goes on evenly.
static inline uint64_t tg_ticks(void) { return __builtin_ia32_rdtsc(); }

// Of addresses of a program.
enum { TG_ADDRESS_BITS = 47 };

// Relocations that hold the address of a function of another library.
enum { TG_JUMP_SLOT = R_X86_64_JUMP_SLOT, TG_GLOBAL_ADDRESS = R_X86_64_GLOB_DAT };

// Programs for this processor, and the loader of those that our library can be loaded by.
enum { TG_MACHINE = EM_X86_64 };
#define TG_LOADER "ld-linux-x86-64.so"
