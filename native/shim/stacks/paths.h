// Whole stacks in the calling context tree. Of two stacks that a thread is found in one after the
// other most frames are the same, the deeper the more: they are found by comparing, and only the
// others are looked for in the tree.
#pragma once

#include "tachograph/api.h"

#include <cstdint>

namespace tachograph::paths {

// Without the memory for it, each frame is looked for.
void open();
// In a forked child: the tree is another one.
void forget();

// As tg_api::intern_path says. Safe in signal handlers; while the calling thread works in one
// generation of the tables.
uint32_t intern(const tg_path& path);

}  // namespace tachograph::paths
