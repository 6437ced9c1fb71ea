// How much of the program's CPU time recording may take: one budget for all sources.
#pragma once

#include <cstdint>

namespace tachograph::budget {

// That part of a second of one processor.
int64_t least_ns();

// What one source that can do less may take. Asked by the recorder's own thread, now and then.
class Share {
  public:
    // CPU ns since the last call that the source with this name may have taken of the program's
    // threads: what is left of the budget when all others, and its own ticks, have theirs; but
    // never less than that part of one processor's second, as a program that has to wait for a
    // processor is to be sampled as finely as any.
    int64_t left_ns(const char* source);

  private:
    int64_t program_ns_ = 0;
    int64_t others_ns_ = 0;
};

}  // namespace tachograph::budget
