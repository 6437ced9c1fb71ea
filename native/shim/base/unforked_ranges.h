// What the program has kept out of its children (MADV_DONTFORK, as for buffers that a device writes
// to): there it leaves holes, which a child may give back as if they were mapped, as Python's mmap
// objects do when they end. So nothing of ours is put into them (kernel::map_new).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::unforked_ranges {

// The kernel has taken this advice. Safe in signal handlers.
void advised(uintptr_t address, size_t size, int advice);

// In the child of a fork: what was kept out of it is a hole from now on.
void become_holes();

}  // namespace tachograph::unforked_ranges
