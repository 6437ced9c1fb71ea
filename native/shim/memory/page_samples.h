// The sample of the pages that came into reserved address space: each stands for others of its
// look, and is followed like a block until it is gone.
//
// Not for several threads at once: the caller has a lock (page_looks.h).
#pragma once

#include "memory/reserved_ranges.h"

#include <cstdint>

namespace tachograph::page_samples {

void open();
// A page has come. True: it is in the sample, and `follow` is due if it is charged to anything.
bool draw();
void follow(uintptr_t address, const reserved_ranges::Page& page);
// A sample was followed, or not: the way to the next one begins.
void next();
bool followed(uintptr_t page);
void went(uintptr_t page);

}  // namespace tachograph::page_samples
