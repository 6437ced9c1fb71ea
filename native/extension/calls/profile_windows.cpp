// Events of CPython 3.11: its profile function, set in all threads while a window is open.
#include "calls/events.h"

namespace tachograph::calls {
namespace {

int on_event(PyObject*, PyFrameObject* frame, int what, PyObject* argument) {
    if (what != PyTrace_CALL && what != PyTrace_RETURN) {
        ignored();
        return 0;
    }
    void* code = nullptr;
    const tg_profiled event = tg_profiled_event(frame, what, argument, &code);
    const void* own = tg_own_frame();
    switch (event) {
        case TG_PROFILED_START:
            started(code, own);
            break;
        case TG_PROFILED_RESUME:
            resumed(code, own);
            break;
        case TG_PROFILED_YIELD:
            suspended(code, own);
            break;
        case TG_PROFILED_END:
            ended(code, own);
            break;
        case TG_PROFILED_NOTHING:
            break;
    }
    return 0;
}

constexpr Events kEvents = {
    .selective = false,
    .begin = [] { return true; },
    .end = [] { tg_unset_profile(on_event); },
    .find = [](bool) {},
    .exceptions = [](bool) {},
    .watch = [](void*) {},
    .unwatch = [](void*) {},
    .open_window = [] { return tg_set_profile(on_event); },
    .close_window = [] { tg_unset_profile(on_event); },
};

}  // namespace

const Events* profile_events() { return tg_has_monitoring ? nullptr : &kEvents; }

}  // namespace tachograph::calls
