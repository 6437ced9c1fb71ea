// Events of CPython 3.11: a function that evaluates frames (PEP 523), there while a window is open.
// Instructions run as they do without it. A profile function would have all of them run the slow
// way: what is pure Python took up to twice its time in a window, and was called less often there.
#include "calls/events.h"
#include "calls/frame_evaluation.h"

namespace tachograph::calls {
namespace {

constexpr tg_call_events kTold = {
    .begins = [](void* code, const void* frame, int goes_on) -> int {
        return (goes_on ? resumed : started)(code, frame) == Further::wanted;
    },
    .ends = [](void* code, const void* frame,
               int is_suspended) { (is_suspended ? suspended : ended)(code, frame); },
    .stack_is_full = break_off,
};

constexpr Events kEvents = {
    .selective = false,
    .begin = [] { return true; },
    .end = tg_tell_no_calls,
    .find = [](bool) {},
    .exceptions = [](bool) {},
    .watch = [](void*) {},
    .unwatch = [](void*) {},
    .open_window = [] { return tg_tell_calls(&kTold) != 0; },
    .close_window = tg_tell_no_calls,
};

}  // namespace

const Events* evaluation_events() { return tg_has_monitoring ? nullptr : &kEvents; }

}  // namespace tachograph::calls
