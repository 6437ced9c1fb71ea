// Guarded reads of memory that may be torn, freed or unmapped.
//
// The fast way is one load or one string move whose fault our SIGSEGV/SIGBUS handler (fault.h)
// turns into a failed read. Where that handler is not in place, the kernel copies
// (process_vm_readv).
#pragma once

#include "arch/memory.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::safe_read {

// Copies `size` bytes; false if any of them could not be read (then `to` is undefined).
bool copy(void* to, const void* from, size_t size);

// The 64-bit word at an address; false if it could not be read.
bool load(uint64_t* to, uint64_t from);

// The same where faults are not handled yet and process_vm_readv may be forbidden: each page is
// tried by a system call, and then read. Only for memory that no other thread unmaps meanwhile.
bool copy_checked(void* to, const void* from, size_t size);

// Whether the word that an address lies in can be read now, as the kernel says. It changes nothing
// and needs no right.
bool readable(uintptr_t address);

// The 32-bit word at an address, or `otherwise` where it cannot be read and our handler is in
// place: one instruction, for what is paid by millions of calls.
__attribute__((always_inline)) inline uint32_t peek(uintptr_t from, uint32_t otherwise) {
    uint32_t value = otherwise;
    __asm__ volatile("1:\n\t" TG_LOAD_32
                     "\n2:\n\t"
                     ".pushsection tachograph_guarded, \"a?\"\n\t"
                     ".balign 4\n\t.long 1b - .\n\t.long 2b - .\n\t"
                     ".popsection"
                     : "+r"(value)
                     : "m"(*reinterpret_cast<const uint32_t*>(from)));
    return value;
}

// Chooses the way for the calling thread's current walk: true = the kernel copies.
void use_kernel(bool yes);
bool kernel_chosen();

// For fault.cpp: where to go on if `pc` is one of our guarded instructions, else 0.
uintptr_t recovery(uintptr_t pc);

}  // namespace tachograph::safe_read
