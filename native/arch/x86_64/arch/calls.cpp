#include "unwind/calls.h"

#include "base/safe_read.h"

#include <cstring>

namespace tachograph::unwind::calls {
namespace {

constexpr int kLongest = 8;  // a prefix, the opcode, ModRM, SIB and four bytes of displacement

// Length of an indirect call (FF /2) from its ModRM byte on.
int rest_of_call(uint8_t modrm, uint8_t sib) {
    if ((modrm >> 3 & 7) != 2) return 0;
    const int mode = modrm >> 6;
    const int register_or_memory = modrm & 7;
    if (mode == 3) return 1;
    const int with_sib = register_or_memory == 4 ? 2 : 1;
    if (mode == 1) return with_sib + 1;
    if (mode == 2) return with_sib + 4;
    if (register_or_memory == 5) return 5;  // relative to the instruction pointer
    if (register_or_memory == 4 && (sib & 7) == 5) return 6;
    return with_sib;
}

}  // namespace

bool end_at(uint64_t address) {
    uint64_t target = 0;
    return end_at(address, &target);
}

bool end_at(uint64_t address, uint64_t* target) {
    uint64_t word = 0;
    *target = 0;
    if (address < kLongest || !safe_read::load(&word, address - kLongest)) return false;
    uint8_t bytes[kLongest + 1] = {};
    memcpy(bytes, &word, sizeof word);
    if (bytes[3] == 0xE8) {
        int32_t distance;
        memcpy(&distance, bytes + 4, sizeof distance);
        *target = address + static_cast<uint64_t>(int64_t{distance});
        return true;
    }
    for (int length = 2; length <= 7; ++length) {
        const uint8_t* call = bytes + kLongest - length;
        if (call[0] == 0xFF && 1 + rest_of_call(call[1], call[2]) == length) return true;
    }
    return false;
}

bool is_stub(uint64_t address) {
    uint64_t word = 0;
    if (!safe_read::load(&word, address)) return false;
    uint8_t bytes[sizeof word];
    memcpy(bytes, &word, sizeof word);
    const uint8_t* at = bytes;
    if (at[0] == 0xF3 && at[1] == 0x0F && at[2] == 0x1E && at[3] == 0xFA) at += 4;  // endbr64
    if (at[0] == 0xF2) ++at;                                                        // bnd
    return at[0] == 0xFF && at[1] == 0x25;
}

}  // namespace tachograph::unwind::calls
