// Where the Python threads of the process are while one of its threads without Python frames is
// sampled: one of them may have asked for what that thread works at.
#pragma once

#include "stacks/threads.h"

#include <cstdint>

namespace tachograph::positions {

// In the sampling signal's handler: writes a row for each thread with Python frames, of the sample
// that was taken of `sampled` at that time. `fault_gets_through`: see stack_capture::walk.
void write(const threads::Thread& sampled, int64_t time_ns, bool fault_gets_through);

}  // namespace tachograph::positions
