#include "calls/evaluated_frames.h"

#include "calls/events.h"
#include "calls/frame_evaluation.h"
#include "calls/watcher.h"
#include "tachograph/mixing.h"

#include <algorithm>
#include <initializer_list>

namespace tachograph::calls {

WindowMoment window_moment;

namespace {

// After the handler's own work, and the kernel's, which at a tick of its clock may have run other
// programs, the processor's caches are not those of the program. A window begins after that.
constexpr int64_t kWarmUpNs = 200'000;
// CPython 3.11: the part of the windows in which calls are timed.
constexpr double kTimed = 0.25;
// The least part of the samples that open a window.
constexpr double kLeastPart = 1.0 / 64;

uint64_t ticks_after(int64_t ns) {
    return ticks() +
           static_cast<uint64_t>(static_cast<double>(ns) * watcher.counting.cost.ticks_by_ns);
}
WindowState state() { return window_moment.state.load(std::memory_order_acquire); }
void set_state(WindowState state) { window_moment.state.store(state, std::memory_order_release); }

// In the handler.
bool is_drawn() {
    const uint32_t part = window_moment.part.load(std::memory_order_relaxed);
    if (next_random(&window_moment.chance) >> 32 > part) return false;
    window_moment.drawn_part = part;
    return true;
}

// A handler may have opened a window since its frames are not evaluated any more.
void keep_opened() {
    if (state() != WindowState::none) tg_evaluate_frames();
}

// The first event in a window that the handler has opened; false if it has not begun.
bool enter() {
    const Moment entered = moment(now());
    const int64_t early_ns = window_moment.opened.cpu_ns - entered.cpu_ns;
    if (early_ns > 0) {
        window_moment.at = ticks_after(early_ns);
        return false;
    }
    const bool times = !watcher.events->selective && watcher.chance.part() < kTimed;
    set_state(times ? WindowState::timing : WindowState::counting);
    watcher.budget.earn(entered, watcher.api->sampling_ns());
    if (!watcher.events->selective) forget_lingering();
    DictWrites& writes = watcher.counting.writes;
    writes.pass();
    if (writes.is_due(entered)) writes.write(&watcher.functions, entered, watcher.counting.all);
    if (times)
        open_window(window_moment.opened);
    else
        begin_counting(window_moment.opened, true);
    pass(entered.ns);
    return true;
}

int begins(void* code, const void* frame, int what, int way) {
    if (state() == WindowState::opening) return 0;
    if (!watcher.watching) {
        // A handler was late.
        tg_evaluate_no_frames();
        set_state(WindowState::none);
        return 0;
    }
    if (state() == WindowState::none) {
        // Put back by one who had found it there.
        tg_evaluate_no_frames();
        keep_opened();
        return 0;
    }
    if (watcher.turning) return 0;
    if (state() == WindowState::opened && (ticks() < window_moment.at || !enter())) {
        charge_counting(way);
        return 0;
    }
    int wanted = 0;
    const bool timed = state() == WindowState::timing || state() == WindowState::lingering;
    if (timed && what != TG_NO_CALL)
        wanted = (what == TG_CALL_BEGINS ? started : resumed)(code, frame) == Further::wanted;
    if (watcher.counting.open) count_event(code, frame, what == TG_CALL_BEGINS, way);
    return wanted;
}

void ends(void* code, const void* frame, int suspends) {
    (suspends ? suspended : ended)(code, frame);
}

// The window that is open is over before its time: calls in calls would take too much of the stack.
void break_off() {
    if (!watcher.active() || state() == WindowState::opening) return;
    // None was begun.
    if (state() == WindowState::opened && !enter()) leave_timing();
    count_loss(TG_LOSS_CALL_WINDOWS_SKIPPED);
    watcher.turning = true;
    const Moment now = moment(calls::now());
    if (!watcher.events->selective) close_window(now);
    end_counting(now);
    if (!watcher.events->selective) silence_window();
    watcher.turning = false;
}

constexpr tg_call_events kEvaluated = {.begins = begins, .ends = ends, .stack_is_full = break_off};

constexpr Events kEvents = {
    .selective = false,
    .begin = [] { return tg_can_evaluate_frames != 0; },
    .end = [] {},
    .find = [](bool) {},
    .exceptions = [](bool) {},
    .watch = [](void*) {},
    .unwatch = [](void*) {},
};

}  // namespace

const Events* evaluation_events() { return tg_has_monitoring ? nullptr : &kEvents; }

void open_at_sample() {
    if (!window_moment.allowed.load(std::memory_order_acquire)) return;
    WindowState before = state();
    if (before == WindowState::opening) return;
    if (before != WindowState::none && before != WindowState::lingering) {
        // The program may have put a function of its own in place of ours, or taken it away again.
        if (!tg_evaluate_frames()) count_loss(TG_LOSS_CALL_WINDOWS_SKIPPED);
        return;
    }
    if (!window_moment.state.compare_exchange_strong(before, WindowState::opening)) return;
    if (!is_drawn()) {
        set_state(before);
        return;
    }
    const Moment now = moment(calls::now());
    window_moment.opened = {now.ns + kWarmUpNs, now.cpu_ns + kWarmUpNs};
    window_moment.at = ticks_after(kWarmUpNs);
    const bool evaluates = tg_evaluate_frames() != 0;
    if (!evaluates) count_loss(TG_LOSS_CALL_WINDOWS_SKIPPED);
    set_state(evaluates ? WindowState::opened : before);
}

double part_of_samples() {
    const double part = window_moment.drawn_part / static_cast<double>(UINT32_MAX);
    return watcher.events->selective ? part : (1 - kTimed) * part;
}

void draw_windows(double part) {
    const double least = std::clamp(part, kLeastPart, 1.0);
    window_moment.part.store(static_cast<uint32_t>(least * UINT32_MAX), std::memory_order_relaxed);
}

double warm_up_ns() { return static_cast<double>(kWarmUpNs); }

bool begin_windows(Moment now) {
    tg_prepare_evaluation(&kEvaluated, TG_WAYS);
    watcher.counting.writes.begin(now, watcher.counting.all);
    window_moment.chance ^= next_random(&watcher.chance.state);
    const bool evaluates = tg_evaluate_frames() != 0;
    if (!evaluates) {
        count_loss(TG_LOSS_CALL_WINDOWS_SKIPPED);
        set_state(WindowState::none);
    } else if (watcher.events->selective) {
        set_state(WindowState::counting);
        begin_counting(now, false);
    } else {
        set_state(WindowState::timing);
        open_window(now);
    }
    window_moment.allowed.store(true, std::memory_order_release);
    return evaluates;
}

void time_beside(Moment now, double passed_ns) {
    if (watcher.events->selective || state() != WindowState::counting) return;
    const auto samples = passed_ns / static_cast<double>(watcher.api->options()->interval_ns);
    if (watcher.chance.part() >= kTimed * samples) return;
    set_state(WindowState::timing);
    open_window(now);
}

void leave_timing() {
    if (watcher.counting.open) {
        set_state(WindowState::counting);
        return;
    }
    tg_evaluate_no_frames();
    for (WindowState left : {WindowState::timing, WindowState::lingering})
        if (window_moment.state.compare_exchange_strong(left, WindowState::none)) return;
    keep_opened();
}

void linger_in_frames() {
    if (!watcher.counting.open) set_state(WindowState::lingering);
}

void leave_counting() {
    if (state() == WindowState::timing) {
        if (!watcher.windows.open) set_state(WindowState::lingering);
        return;
    }
    tg_evaluate_no_frames();
    set_state(WindowState::none);
}

void end_windows(Moment now) {
    window_moment.allowed.store(false, std::memory_order_release);
    if (state() == WindowState::opened && watcher.watching && !enter()) leave_timing();
    if (!watcher.events->selective) shut_window(now);
    end_counting(now);
    watcher.counting.writes.write(&watcher.functions, now, watcher.counting.all);
    watcher.counting.writes.forget();
    tg_evaluate_no_frames();
    set_state(WindowState::none);
}

void forget_windows() {
    tg_evaluate_no_frames();
    set_state(WindowState::none);
    forget_counting();
}

void measure_windows(WindowState measured, tg_way way) {
    const bool any = measured != WindowState::none;
    tg_prepare_evaluation(&kEvaluated, way);
    set_state(measured);
    if (any)
        tg_evaluate_frames();
    else
        tg_evaluate_no_frames();
}

}  // namespace tachograph::calls
