// Off-CPU time of a thread between two looks that belongs to no observed stack, and how much of it
// the thread was ready to run: the kernel's exact count of that, minus what was observed.
#pragma once

#include "spool/layout.h"

#include <sys/types.h>
#include <cstdint>

namespace tachograph {

class UnobservedWait {
  public:
    // Time until the next reading of the kernel's count is left out.
    void pause() { count_ns_ = -1; }
    void begin(pid_t tid);
    void add(int64_t off_ns) { off_ns_ += off_ns; }
    // Off-CPU time that was observed and attributed.
    void placed(int64_t off_ns, Target target) { ready_ns_ -= target == Target::cpu ? off_ns : 0; }

    struct Sum {
        int64_t ready_ns, unknown_ns;
    };
    int64_t off_ns() const { return off_ns_; }
    // The sum of all that was added since the last call; begins anew.
    Sum take(pid_t tid);

  private:
    int64_t off_ns_ = 0;
    int64_t ready_ns_ = 0;  // not yet written; negative if more was observed than counted
    int64_t count_ns_ = -1;
};

}  // namespace tachograph
