// A census of suspended tasks of asyncio and trio: where a random part of them stand, and what
// awaits them.
#pragma once

#include "compat.h"
#include "tachograph/api.h"

namespace tachograph {

// Through guarded reads, by a thread that is not the interpreter's and does not hold the GIL: what
// moved on while it was read is counted, and nothing of it is taken down.
void take_census(const tg_api* api, const tg_offsets* offsets, tg_census* out);

}  // namespace tachograph
