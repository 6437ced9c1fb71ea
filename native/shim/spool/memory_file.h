// Memory that the recording command holds as well: what is stored there never waits for a disk, is
// never refused by one, and outlives this process.
#pragma once

#include <cstdint>

namespace tachograph::memory_file {

// Makes a file of `size` zero bytes in memory, which can never shrink, and maps it. 0 or an errno;
// the caller closes `fd`. Pages are taken when they are touched, or all at once where the kernel
// does not promise more than it has (then a page that cannot be had would be a SIGBUS).
long create(uint64_t size, bool at_once, uint8_t** base, int* fd);

// Writes bytes to the place `at` of the file at `path`; `make`: which is made if it is not there. 0
// or an errno.
long copy(const char* path, const void* from, uint64_t size, uint64_t at, bool make);

// Whether this process may write as far as that into a file: beyond its limit a signal (SIGXFSZ)
// comes, in memory too.
bool may_reach(uint64_t size);

}  // namespace tachograph::memory_file
