// How long a scan of pages may take that the program waits for: where recording is paused, and
// where a process ends or is replaced by another program.
//
// A part of the time since the last one. A child of a moment, as a server forks them, is held up by
// next to nothing; a program that has run for long has time for all of its memory.
#pragma once

#include "memory/page_scan.h"

#include <cstdint>

namespace tachograph::scan_time {

inline constexpr int64_t kParts = 20;
inline constexpr int64_t kLeastNs = 2'000'000;
inline constexpr int64_t kMostNs = 20'000'000;

class Share {
  public:
    void begin(int64_t now_ns) { since_ns_ = now_ns; }
    // What has added up is taken.
    TimeLimit take(int64_t now_ns) {
        const int64_t part = since_ns_ == 0 ? 0 : (now_ns - since_ns_) / kParts;
        since_ns_ = now_ns;
        return TimeLimit(part < kLeastNs ? kLeastNs : part > kMostNs ? kMostNs : part);
    }

  private:
    int64_t since_ns_ = 0;
};

}  // namespace tachograph::scan_time
