// A file of the spool in this process's memory.
#pragma once

#include <cstdint>

namespace tachograph::mapped_file {

// Gives an empty file its blocks on the disk, and maps it. 0 or an errno. Closes it in any case.
long fill(long fd, uint64_t size, uint8_t** base);

// Maps an open file, which must be a regular one of this size. 0 or an errno. Closes it in any
// case.
long map(int fd, uint64_t size, uint8_t** base);

void unmap(uint8_t* base, uint64_t size);

}  // namespace tachograph::mapped_file
