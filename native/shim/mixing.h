// Scatters the bits of a number: for hash tables, and for random numbers.
#pragma once

#include <cstdint>

namespace tachograph {

inline uint64_t mix(uint64_t x) {  // splitmix64's finaliser
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

}  // namespace tachograph
