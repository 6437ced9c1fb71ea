// On whose stack lies what a native thread works at.
//
// Who gives work to a pool and waits for it has the description of that work on its own stack:
// rayon's jobs, the queue of OpenBLAS, the variables of a team of OpenMP. Who works at it has the
// address in a register that calls preserve, and what it calls saves that register below its return
// address. Where a job was stolen from another worker of the pool, it lies on that one's stack; the
// frames around it wait for the job, so that they can be read, and lead on to where that one's work
// lies.
#pragma once

#include "stacks/threads.h"
#include "unwind/unwinder.h"

#include <cstdint>

namespace tachograph::work_holder {

// The thread with Python frames (its id) that the calling thread's stack leads to; kNone: to none.
// `frames` are those of the calling thread, which was interrupted with these registers, `count` of
// `room`; afterwards they may be others.
uint32_t find(const unwind::Registers& interrupted, unwind::Frame* frames, uint32_t count,
              uint32_t room);

}  // namespace tachograph::work_holder
