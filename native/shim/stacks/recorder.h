// What the parts of the shim share: whether we record, how, and who walks Python stacks.
#pragma once

#include "spool/layout.h"
#include "tachograph/api.h"

#include <atomic>
#include <cstdint>

namespace tachograph {

struct Recorder {
    std::atomic<bool> recording{false};  // armed, not ended, not in a forked child
    std::atomic<int> at_work{0};  // threads of the program that are in our handlers and hooks
    std::atomic<bool> paused{false};
    std::atomic<bool> helper_stops{false};  // the recorder's own thread is waited for
    std::atomic<int> signal{0};             // of CPU samples; 0: there is none
    int64_t interval_ns = 0;
    bool waits = false;
    uint32_t native_depth = 0;  // frames of a native call path
    tg_walker walker{};
};

// A walk before it has begun.
inline constexpr tg_walk kNotWalked{TG_NONE, TG_STACK_NONE, 2, 0, 0, 0, 0, nullptr, 0,
                                    0,       nullptr,       0, 0};

// The one recorder of this process.
Recorder& recorder();

inline bool recording() { return recorder().recording.load(std::memory_order_acquire); }

// From here to there the calling thread may use what a recording has: who ends one waits for it.
// Whether there is a recording is to be asked after this.
class AtWork {
  public:
    AtWork() { recorder().at_work.fetch_add(1, std::memory_order_seq_cst); }
    ~AtWork() { recorder().at_work.fetch_sub(1, std::memory_order_release); }
    AtWork(const AtWork&) = delete;
    AtWork& operator=(const AtWork&) = delete;
};

// Whether this very process records: a vfork child shares all of this memory, but is not it.
bool live();

// Ends recording at once because of `error` (an errno), with no row more: the program goes on, the
// control file says why.
void stop_early(int error);
// Ends recording with its last rows: as `ended`, or as `stopped` because of `error`. Returns when
// all is written. The recorder's own thread does not work any more, or calls it. `last_look` is
// called behind the last rows; null: what the recorder itself takes up is looked at.
void end_recording(ControlState state, int error = 0, void (*last_look)() = nullptr);

}  // namespace tachograph
