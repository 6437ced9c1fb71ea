// Which pages of reserved address space are in memory, as far as they have been looked at.
//
// One bit for each page, in regions of 32 MiB that take up room from their first page on. The
// kernel is asked for a part of 2 MiB at a time, by any thread. All else is not for several threads
// at once: the caller has a lock (page_looks.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::resident_pages {

inline constexpr uintptr_t kPage = 4096;
inline constexpr uintptr_t kRegion = uintptr_t{32} << 20;
inline constexpr uintptr_t kPart = uintptr_t{2} << 20;
inline constexpr size_t kPartPages = kPart / kPage;

inline uintptr_t region_of(uintptr_t address) { return address & ~(kRegion - 1); }
inline uintptr_t part_of(uintptr_t address) { return address & ~(kPart - 1); }

// The pages of one part that are in memory, a bit for each.
struct Answer {
    uint64_t words[kPartPages / 64];
};

// What is told of every page that came or went.
struct Visitor {
    void (*came)(void* context, uintptr_t page);
    void (*went)(void* context, uintptr_t page);
    void* context;
};

struct Change {
    size_t came = 0;  // pages
    size_t went = 0;
    bool known = true;  // false: there is no room to keep what came
};

bool open();
// Asks the kernel which pages of [begin, end) are in memory; the two are of one part. Needs no
// lock: the answer is of a moment, and may be old when it is used.
Answer ask(uintptr_t begin, uintptr_t end);
// Whether all pages of [begin, end) are known to be in memory; the two are of one part.
bool full(uintptr_t begin, uintptr_t end);
// Whether none is.
bool empty(uintptr_t begin, uintptr_t end);
// Whether any page of a region is known to be in memory.
bool any(uintptr_t base);
// The first region from place `*place` of the table on of which any page is known to be in memory;
// `*place` is behind it then. 0: there is none.
uintptr_t next_region(size_t* place);
// How many pages of [begin, end) have come since it was last compared.
size_t news(uintptr_t begin, uintptr_t end, const Answer& answer);
// `learn`: the pages that came are known from now on and told of, else only counted. Those that
// went are known and told of in any case.
Change compare(uintptr_t begin, uintptr_t end, const Answer& answer, bool learn,
               const Visitor& visitor);
// The pages of [begin, end) are gone, or about to go.
void forget(uintptr_t begin, uintptr_t end, const Visitor& visitor);

}  // namespace tachograph::resident_pages
