// The interpreter's allocators, with ours around them.
#pragma once

#include "tachograph/api.h"

namespace tachograph {

// Wraps the allocators of all domains, and begins the memory part of the recording. With the GIL.
// False if the interpreter's blocks cannot be seen.
bool watch_memory(const tg_api* api);

// At the end: counts it if something has put other allocators in the place of ours meanwhile.
void check_memory(const tg_api* api);

}  // namespace tachograph
