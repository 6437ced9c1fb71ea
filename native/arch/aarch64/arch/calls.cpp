#include "unwind/calls.h"

#include "base/safe_read.h"

namespace tachograph::unwind::calls {
namespace {

constexpr uint64_t kInstruction = 4;

bool load_instruction(uint32_t* to, uint64_t from) {
    return safe_read::copy(to, reinterpret_cast<const void*>(from), sizeof *to);
}

// Arm Architecture Reference Manual, section C4.1: bl, and blr with and without authentication.
bool is_direct(uint32_t instruction) { return (instruction & 0xFC000000) == 0x94000000; }
bool is_indirect(uint32_t instruction) {
    return (instruction & 0xFFFFFC1F) == 0xD63F0000 || (instruction & 0xFEFFF800) == 0xD63F0800;
}

}  // namespace

bool end_at(uint64_t address) {
    uint64_t target = 0;
    return end_at(address, &target);
}

bool end_at(uint64_t address, uint64_t* target) {
    *target = 0;
    uint32_t call = 0;
    if (address % kInstruction != 0 || !load_instruction(&call, address - kInstruction))
        return false;
    if (!is_direct(call)) return is_indirect(call);
    const int32_t distance = static_cast<int32_t>(call << 6) >> 4;  // in bytes
    *target = address - kInstruction + static_cast<uint64_t>(int64_t{distance});
    return true;
}

bool is_stub(uint64_t address) {
    constexpr uint32_t kLandingPad = 0xD503245F;  // bti c
    uint32_t first = 0;
    if (!load_instruction(&first, address)) return false;
    if (first == kLandingPad && !load_instruction(&first, address + kInstruction)) return false;
    return (first & 0x9F00001F) == 0x90000010;  // adrp x16
}

}  // namespace tachograph::unwind::calls
