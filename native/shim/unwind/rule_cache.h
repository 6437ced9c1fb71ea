// Rules that were found before: direct-mapped, lock-free, never waited for.
#pragma once

#include "arch/processor.h"

#include <cstdint>

namespace tachograph::unwind::rule_cache {

// False if there is no memory.
bool open();

// A program counter, whether it is a return address, and the images' generation.
struct Key {
    uint64_t address;
    bool exact;
    uint16_t generation;

    // Where addresses have 48 bits, instructions are aligned, and what is exact is in the address.
    uint64_t word() const {
        return address ^ (uint64_t{generation} << 48) ^ (uint64_t{exact} << TG_ADDRESS_BITS);
    }
};

// False if it is not there (any more).
bool find(const Key& key, uint64_t* rule);
void keep(const Key& key, uint64_t rule);

}  // namespace tachograph::unwind::rule_cache
