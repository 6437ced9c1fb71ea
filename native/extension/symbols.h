// Function names for offsets in an ELF file, from its symbol tables and those of its debug file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tachograph {

struct Function {
    std::optional<std::string> name;  // demangled
    std::optional<uint64_t> address;  // of the file offset, in the image's own addresses
    std::optional<uint64_t> start;    // of the function, likewise
};

// One function per file offset; of `debug_path`, where it is not empty, the symbol tables are read
// as well. A file that cannot be read, or is not a 64-bit ELF image, names nothing; both are
// untrusted and read within their bounds.
std::vector<Function> resolve_symbols(const std::string& path, const std::string& debug_path,
                                      const std::vector<uint64_t>& offsets);

}  // namespace tachograph
