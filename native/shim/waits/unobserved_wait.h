// Off-CPU time of a thread that fell between two looks, on no stack that was seen, and how much
// of it the thread was ready to run: the kernel counts exactly how long a thread is, and what the
// thread was seen to be is taken off that.
#pragma once

#include "spool/layout.h"

#include <sys/types.h>
#include <cstdint>

namespace tachograph {

class UnobservedWait {
  public:
    // What comes before the next reading of the count is not in it.
    void pause() { count_ns_ = -1; }
    void begin(pid_t tid);
    void add(int64_t off_ns) { off_ns_ += off_ns; }
    // Off-CPU time that was seen.
    void placed(int64_t off_ns, Target target) { ready_ns_ -= target == Target::cpu ? off_ns : 0; }

    struct Sum {
        int64_t ready_ns, unknown_ns;
    };
    int64_t off_ns() const { return off_ns_; }
    // All that was added since the last time.
    Sum take(pid_t tid);

  private:
    int64_t off_ns_ = 0;
    int64_t ready_ns_ = 0;  // in no span yet; below 0 if more was seen than counted
    int64_t count_ns_ = -1;
};

}  // namespace tachograph
