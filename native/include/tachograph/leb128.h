// Numbers of variable length, as DWARF has them (LEB128).
#pragma once

#include <cstdint>

namespace tachograph::leb128 {

// Of at most so many bits: what goes on behind them is no number.
constexpr int kBits = 64;

// `next` gives one byte after the other. False: there is no end.
template <typename Next>
bool read_unsigned(Next next, uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < kBits; shift += 7) {
        const uint8_t byte = next();
        *value |= static_cast<uint64_t>(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) return true;
    }
    return false;
}

template <typename Next>
bool read_signed(Next next, int64_t* value) {
    uint64_t bits = 0;
    for (int shift = 0; shift < kBits; shift += 7) {
        const uint8_t byte = next();
        bits |= static_cast<uint64_t>(byte & 0x7F) << shift;
        if ((byte & 0x80) != 0) continue;
        if ((byte & 0x40) != 0 && shift + 7 < kBits) bits |= ~uint64_t{0} << (shift + 7);
        *value = static_cast<int64_t>(bits);
        return true;
    }
    return false;
}

}  // namespace tachograph::leb128
