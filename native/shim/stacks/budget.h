// How much of the program's CPU time recording may take: one budget for all sources.
#pragma once

#include <cstdint>

namespace tachograph::budget {

// What one source that can do less may take. Asked by the recorder's own thread, now and then.
class Share {
  public:
    // CPU ns since the last call that the source with this name may have taken of the program's
    // threads: what is left of the budget when all others, and its own ticks, have theirs; but
    // never less than a third of it, as others do not grow with what the program does.
    int64_t left_ns(const char* source);

  private:
    int64_t program_ns_ = 0;
    int64_t others_ns_ = 0;
};

}  // namespace tachograph::budget
