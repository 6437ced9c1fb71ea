// A new file of the spool in this process's memory.
#pragma once

#include <cstdint>

namespace tachograph::mapped_file {

// Makes the file, with its blocks on the disk, and maps it. 0 or an errno; then there is no file.
long create(const char* path, uint64_t size, uint8_t** base);

// Maps an open file, which must be a regular one of this size. 0 or an errno. Closes it in any
// case.
long map(int fd, uint64_t size, uint8_t** base);

// Takes back what `create` made.
void discard(const char* path, uint8_t* base, uint64_t size);

void unmap(uint8_t* base, uint64_t size);

}  // namespace tachograph::mapped_file
