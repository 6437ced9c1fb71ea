// Scatters the bits of a number: for hash tables, and for random numbers.
#pragma once

#include <cstdint>

namespace tachograph {

inline uint64_t mix(uint64_t x) {  // splitmix64's finaliser
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

// A generator of its own (splitmix64): the next number, and one between 0 and 1.
inline uint64_t next_random(uint64_t* state) { return mix(*state += 0x9E3779B97F4A7C15ull); }
inline double uniform(uint64_t* state) {
    return static_cast<double>(next_random(state) >> 11) * 0x1p-53;
}

}  // namespace tachograph
