// How much of the large blocks is in memory: what malloc gave and the program has not touched takes
// up none.
//
// malloc has such blocks from the kernel as mappings of their own, and a page of them is there from
// its first touch on. So they are looked at (mincore), as reserved address space is (reserves.h).
#pragma once

namespace tachograph::block_looks {

// Looks at the large blocks that have their rows, and writes of which more or less is in memory
// than was told. `now`: also if that has just been done, at some cost.
void look(bool now);

void after_fork_in_child();

}  // namespace tachograph::block_looks
