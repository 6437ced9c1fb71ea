// Function names for offsets in an ELF file, from its symbol tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tachograph {

// One name (demangled) or nothing per file offset. A file that cannot be read, or is not a 64-bit
// ELF image, names nothing; it is untrusted and read within its bounds.
std::vector<std::optional<std::string>> resolve_symbols(const std::string& path,
                                                        const std::vector<uint64_t>& offsets);

}  // namespace tachograph
