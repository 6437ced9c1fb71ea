// The list of address space that the program reserved, and who is charged with each piece of it.
//
// Not for several threads at once: the caller has a lock (page_looks.h).
#pragma once

#include "spool/layout.h"
#include "tachograph/api.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::reserved_ranges {

// A page that has come into memory, and who is charged with it.
struct Page {
    uint32_t thread = kNone;
    uint32_t stack = kNone;
    uint8_t stack_state = TG_STACK_UNSEEN;
    uint64_t pc = 0;
};

// Who is charged with all of a mapping's pages: where that is not known, it is who looks.
struct Owner {
    bool known = false;
    Page page{};
};

struct Range {
    uintptr_t begin;
    uintptr_t end;
    Owner owner{};
};

bool open();
size_t count();
// Bytes of all ranges together.
uintptr_t span();
const Range& at(size_t index);
// The range that [begin, end) lies in; nullptr: it lies in none, or in several.
const Range* holding(uintptr_t begin, uintptr_t end);
// The first piece of a range that is not before `address` and lies in one of the parts that pages
// are asked for in (resident_pages.h); false: there is none.
bool part_from(uintptr_t address, Range* part);
// The first range that ends behind `address`; nullptr: there is none.
const Range* first_behind(uintptr_t address);

// [begin, end) is in none of them before; neighbours without an owner become one. False: the list
// is full, which is counted.
bool add(const Range& range);
void cut(uintptr_t begin, uintptr_t end);

}  // namespace tachograph::reserved_ranges
