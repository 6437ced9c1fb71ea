// The state of windows, in which the frames of all calls are evaluated by us: they are opened in
// the sampling signal's handler, in whatever thread it interrupts, and all else is done with the
// GIL.
#pragma once

#include "calls/clock.h"

#include <atomic>
#include <cstdint>

namespace tachograph::calls {

enum class WindowState : uint8_t {
    none,
    opening,  // the handler is at work
    opened,   // by it
    counting,
    timing,     // CPython 3.11
    lingering,  // after that, and no call is counted: another window may be opened
};

struct WindowMoment {
    std::atomic<bool> allowed{false};  // the handler may open one
    std::atomic<WindowState> state{WindowState::none};
    // The part of the samples that open a window, in 2^-32, and the handler's own chance.
    std::atomic<uint32_t> part{UINT32_MAX};
    uint64_t chance = 0;
    uint32_t drawn_part = UINT32_MAX;  // of which the window that is open was drawn
    Moment opened;                     // when the window begins, soon after the handler
    uint64_t at = 0;                   // the same by the processor's counter, or sooner
};
extern WindowMoment window_moment;

// In the sampling signal's handler: this moment was drawn. Any thread, with the GIL or without.
void open_at_sample();

}  // namespace tachograph::calls
