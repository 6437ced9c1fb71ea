// The mappings of this process, as the kernel lists them in /proc/self/maps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::process_maps {

struct Mapping {
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t file_offset = 0;
    bool readable = false;
    bool writable = false;
    bool executable = false;
    bool shared = false;
    const char* path = "";  // not terminated
    size_t path_length = 0;
    uint64_t path_hash = 0;
    // Where offset 0 of the same file is mapped, if that was met before: where its ELF header is.
    uint64_t image = 0;
};

// Calls `visit` for each mapping, in the order of addresses. `buffer` holds a part of the list, at
// least its longest line. False if the list could not be read to its end.
bool each(char* buffer, size_t size, void (*visit)(const Mapping& mapping, void* context),
          void* context);

// Reads one line of the list, without `image`. False if it is none.
bool parse(const char* line, const char* end, Mapping* mapping);

// Calls `visit` for each line of a file of the kernel's, which does not end with its newline.
// `visit` returns false to read no further. False if the file could not be read to its end.
bool each_line(const char* path, char* buffer, size_t size,
               bool (*visit)(const char* line, const char* end, void* context), void* context);

}  // namespace tachograph::process_maps
