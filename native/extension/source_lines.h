// Where a program counter comes from in the source, from DWARF's line tables (.debug_line).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tachograph {

// The contents of a file's sections; empty where it has none.
struct DebugSections {
    std::string_view line;       // .debug_line
    std::string_view line_text;  // .debug_line_str
};

struct SourceLine {
    std::string file;  // as the compiler was called with it: perhaps relative
    uint32_t line;
};

// One place or nothing per address of the image, then per entry: where a function begins, which may
// be before the line of its first instruction. Reads versions 2 to 5 of the tables, of 64-bit
// code; they are untrusted, read within their bounds, and in time linear in their size.
// Source: DWARF 5, section 6.2.
std::vector<std::optional<SourceLine>> find_source_lines(const DebugSections& sections,
                                                         const std::vector<uint64_t>& addresses,
                                                         const std::vector<uint64_t>& entries);

}  // namespace tachograph
