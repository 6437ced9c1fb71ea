// Where the Python threads of the process are while one of its threads without Python frames is
// sampled: one of them may have asked for what that thread works at.
#pragma once

#include "stacks/threads.h"

#include <cstdint>

namespace tachograph::positions {

struct Sampled {
    const threads::Thread& thread;
    int64_t time_ns;
    uint32_t work_holder;  // see work_holder.h
};

// In the sampling signal's handler: writes a row for each thread with Python frames.
// `fault_gets_through`: see stack_capture::walk.
void write(const Sampled& sampled, bool fault_gets_through);

}  // namespace tachograph::positions
