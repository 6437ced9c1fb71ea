// The header of a record, as format-spec/SPOOL.md, "Record", defines it.
#pragma once

#include "spool/layout.h"

namespace tachograph {

// The header is written last; `check` lets a reader find the next whole record behind a torn one.
constexpr uint64_t record_header(Kind kind, uint32_t length, uint64_t offset, uint32_t sequence) {
    const auto k = static_cast<uint32_t>(kind);
    const uint32_t check = (0xA5C3u ^ (length >> 3) ^ (k * 0x1F35u) ^
                            (static_cast<uint32_t>(offset >> 3) * 0x2545u) ^ (sequence * 0x3D4Du)) &
                           0xFFFFu;
    return static_cast<uint64_t>(length) | static_cast<uint64_t>(k) << 32 |
           static_cast<uint64_t>(check) << 48;
}

// The header of the same place as an abandoned record.
constexpr uint64_t abandoned_header(uint64_t header) {
    const auto kind = static_cast<uint32_t>(header >> 32 & 0xFF);
    const auto length = static_cast<uint32_t>(header);
    const auto others = static_cast<uint32_t>(header >> 48) ^ ((kind * 0x1F35u) & 0xFFFFu);
    const auto k = static_cast<uint32_t>(Kind::abandoned);
    return static_cast<uint64_t>(length) | static_cast<uint64_t>(k) << 32 |
           static_cast<uint64_t>((others ^ (k * 0x1F35u)) & 0xFFFFu) << 48;
}

constexpr size_t padded(size_t size) { return (size + 7) & ~size_t{7}; }

}  // namespace tachograph
