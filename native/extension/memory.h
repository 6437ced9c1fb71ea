// The interpreter's allocators, with ours around them.
#pragma once

#include "tachograph/api.h"

namespace tachograph {

// Wraps the allocators of all domains, and begins the memory part of the recording. With the GIL.
// False if the interpreter's blocks cannot be seen.
// `alone`: no other thread of the program can be allocating without the GIL.
bool watch_memory(const tg_api* api, bool alone);
// Puts the interpreter's own allocators back. With the GIL.
void unwatch_memory(const tg_api* api);

// Where memory is not recorded: what is given back is told to what watches it. With the GIL.
void watch_releases(const tg_api* api);

// At the end: counts it if something has put other allocators in the place of ours meanwhile.
void check_memory(const tg_api* api);

}  // namespace tachograph
