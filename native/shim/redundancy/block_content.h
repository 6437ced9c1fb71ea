// What a block held when it was given back: a hash tells whether another one held the same, and
// nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::redundancy::block_content {

struct Content {
    uint64_t hash = 0;       // of all of a small block, of parts of a large one; 0: not known
    uint64_t head_hash = 0;  // of its beginning alone; 0: it is no longer than that, or not known
};

// Chooses the key of the recording's hashes, and forgets the one before.
void choose_key();

// Of [address, address + size), which may be torn or unmapped. Safe in signal handlers and in
// allocation hooks. Not known either of a block that is one word over and over: fresh pages and
// cleared arrays are no results.
Content of(uint64_t address, uint64_t size);

}  // namespace tachograph::redundancy::block_content
