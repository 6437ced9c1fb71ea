// How much of the large blocks is in memory: what malloc gave and the program has not touched takes
// up none.
//
// malloc has such blocks from the kernel as mappings of their own, and a page of them is there from
// its first touch on. So they are looked at (mincore), as reserved address space is (reserves.h).
#pragma once

#include <cstdint>

namespace tachograph::block_looks {

// Looks at the large blocks that have their rows, and writes of which more or less is in memory
// than was told; those that there is no time for are looked at the next time, or, if it is `now`,
// counted as a loss. Unless `now`, not if looks have taken too much time lately: then that is owed.
void look(bool now);
// Looks if that is owed, and there is time for it. True: it has looked.
bool look_if_owed();

// The process is recorded from now on.
void begin(int64_t now_ns);
void after_fork_in_child();

}  // namespace tachograph::block_looks
