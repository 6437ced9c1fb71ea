// The anonymous mappings that the program made itself: what it holds besides its blocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::mappings {

// What a change of mappings means for the counters: bytes that are new, bytes that are gone.
struct Change {
    size_t mapped = 0;
    size_t unmapped = 0;
};

// [address, address + size) is a new mapping of the program's; what it covers is gone.
Change add(uintptr_t address, size_t size);
// What was ours of [address, address + size) is gone. Followed mappings that begin there die.
Change remove(uintptr_t address, size_t size);
bool holds(uintptr_t address, size_t size);

// Around a fork: the table is whole in the child. Between the two the calling thread may still use
// it.
// The process is not recorded any more.
void forget();

void before_fork();
void after_fork(bool in_child);

// Takes mappings of exactly `size` bytes off the counters if `are(address)`; says how many bytes.
size_t disown(size_t size, bool (*are)(uintptr_t address, void* context), void* context);

}  // namespace tachograph::mappings
