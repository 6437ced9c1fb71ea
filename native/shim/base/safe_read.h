// Guarded reads of memory that may be torn, freed or unmapped.
//
// The fast way is one load or one string move whose fault our SIGSEGV/SIGBUS handler (fault.h)
// turns into a failed read. Where that handler is not in place, the kernel copies
// (process_vm_readv).
#pragma once

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

// Chooses the way for the calling thread's current walk: true = the kernel copies.
void use_kernel(bool yes);
bool kernel_chosen();

// For fault.cpp: where to go on if `pc` is one of our guarded instructions, else 0.
uintptr_t recovery(uintptr_t pc);

}  // namespace tachograph::safe_read
