// Which pages of reserved address space are in memory, as far as they have been looked at.
//
// One bit for each page, in regions of 32 MiB that take up room from their first page on. Not for
// several threads at once: the caller has a lock (reserves.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::resident_pages {

inline constexpr uintptr_t kPage = 4096;
inline constexpr uintptr_t kRegion = uintptr_t{32} << 20;

inline uintptr_t region_of(uintptr_t address) { return address & ~(kRegion - 1); }

// What is told of every page that came or went.
struct Visitor {
    void (*came)(void* context, uintptr_t page);
    void (*went)(uintptr_t page);
    void* context;
};

struct Change {
    size_t came = 0;  // pages
    size_t went = 0;
    bool known = true;  // false: there is no room to keep what came
};

bool open();
// Whether all pages of [begin, end) are known to be in memory; the two are of one region.
bool full(uintptr_t begin, uintptr_t end);
// Asks the kernel which pages of them are in memory. `learn`: those that came are known from now on
// and told of, else only counted.
Change compare(uintptr_t begin, uintptr_t end, bool learn, const Visitor& visitor);
// The pages of [begin, end) are gone, or about to go.
size_t forget(uintptr_t begin, uintptr_t end, const Visitor& visitor);

}  // namespace tachograph::resident_pages
