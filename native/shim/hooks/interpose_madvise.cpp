// madvise: what the program gives back of address space that it has reserved is in use no more, and
// what it keeps out of its children is a hole there.
#include "base/pages.h"
#include "base/unforked_ranges.h"
#include "hooks/interposed.h"
#include "memory/heap.h"
#include "memory/libc_allocators.h"
#include "memory/reserves.h"

#include <sys/mman.h>
#include <cstdint>

using namespace tachograph;

TG_EXPORT int madvise(void* at, size_t size, int advice) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    // Not MADV_FREE: those pages stay until the kernel needs them, and the program may use them
    // again, and tell the kernel nothing.
    const bool gives = advice == MADV_DONTNEED || advice == MADV_REMOVE;
    if (gives && reserves::any() && heap::counting() && pages::begin_of(address) == address)
        reserves::give_back(address, address + pages::round_up(size));
    const int result = libc_allocators::g_real.madvise(at, size, advice);
    const bool of_forks = advice == MADV_DONTFORK || advice == MADV_DOFORK;
    if (of_forks && result == 0) unforked_ranges::advised(address, size, advice);
    return result;
}
