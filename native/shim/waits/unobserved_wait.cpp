#include "waits/unobserved_wait.h"

#include "waits/blocked.h"

#include <algorithm>

namespace tachograph {

void UnobservedWait::begin(pid_t tid) { count_ns_ = blocked::ready_ns(tid); }

UnobservedWait::Sum UnobservedWait::take(pid_t tid) {
    const int64_t before_ns = count_ns_;
    begin(tid);
    if (before_ns < 0 || count_ns_ < 0)
        ready_ns_ = 0;
    else
        ready_ns_ += count_ns_ - before_ns;
    const int64_t ready_ns = std::clamp<int64_t>(ready_ns_, 0, off_ns_);
    const Sum sum{ready_ns, off_ns_ - ready_ns};
    ready_ns_ -= ready_ns;
    off_ns_ = 0;
    return sum;
}

}  // namespace tachograph
