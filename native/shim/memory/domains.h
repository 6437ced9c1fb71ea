// Wrappers around the interpreter's own allocators: they say in which domain a block is, and see
// the small blocks that never reach malloc. No header is added, nothing is replaced.
#pragma once

#include "tachograph/api.h"

namespace tachograph::domains {

// Whether small blocks in such pools can be sized.
bool known(const tg_pools& pools);

// False if there is no room for one more, or the pools are not known.
bool wrap(int domain, const tg_allocator& original, const tg_pools* pools, tg_allocator* wrapper);
// Where memory is not recorded: tells of blocks that are given back (releases.h), and does nothing
// else. For an allocator whose small blocks are in pools that are known; those of malloc's tell of
// themselves. False if the domain has such a wrapper.
bool wrap_releases(int domain, const tg_allocator& original, tg_allocator* wrapper);
bool wrap_arenas(const tg_arena_allocator& original, const tg_pools& pools,
                 tg_arena_allocator* wrapper);
// Of the wrappers since the last time none is in use any more: there is room for others. Else they
// stay, below an allocator that came later.
void unwrapped(bool allocators, bool arenas);

}  // namespace tachograph::domains
