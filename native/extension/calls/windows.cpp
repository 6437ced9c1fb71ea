// Windows in which all functions are watched, where they cannot be watched one by one.
#include "calls/watcher.h"

#include <algorithm>

namespace tachograph::calls {
namespace {

// The part of a window that watching takes, at least: while there is a profile function,
// CPython 3.11 runs every instruction the slow way, and that is in no event.
constexpr double kSlowed = 0.6;

// What a window of so much time has taken beyond what its events were charged.
double uncharged(const Windows& windows, double ran_ns) {
    const double charged = watcher.budget.spent_ns() - windows.spent_ns;
    return std::max(kSlowed * ran_ns - charged, 0.0);
}

}  // namespace

void Windows::begin(Moment now) {
    *this = Windows{};
    began = now;
}

// The length of a window is settled in advance, from how many events there were before.
void open_window(Moment now, bool drawn) {
    Windows& windows = watcher.windows;
    windows.open = true;
    windows.opened = now;
    windows.drawn = drawn;
    windows.events = 0;
    windows.spent_ns = watcher.budget.spent_ns();
    const double affordable = watcher.budget.credit_ns() / watcher.budget.event_ns();
    const auto period = static_cast<double>(watcher.options.period_ns);
    double length = std::min(std::max(watcher.budget.credit_ns(), 0.0) / kSlowed, period);
    if (windows.event_rate > 0) length = std::min(affordable / windows.event_rate, length);
    windows.length_ns = std::max(static_cast<int64_t>(length), kShortestIntervalNs);
    for (int skipped = watcher.events->open_window(); skipped > 0; --skipped)
        count_loss(TG_LOSS_CALL_WINDOWS_SKIPPED);
    for (size_t at = 0; at < watcher.functions.high(); ++at)
        if (watcher.functions.at(at)->code)
            open(watcher.functions.at(at), now, windows.length_ns, drawn);
}

void close_window(Moment now) {
    Windows& windows = watcher.windows;
    if (!windows.open) return;
    watcher.events->close_window();
    windows.open = false;
    const int64_t passed = std::max<int64_t>(now.ns - windows.opened.ns, 1);
    const int64_t ran = std::max<int64_t>(now.cpu_ns - windows.opened.cpu_ns, 0);
    const auto whole = static_cast<double>(ran);
    watcher.budget.charge(uncharged(windows, whole));
    const double rate = windows.events / static_cast<double>(passed);
    windows.event_rate = windows.event_rate > 0 ? (windows.event_rate + rate) / 2 : rate;
    if (windows.drawn) {
        windows.cost_ns += std::min(watcher.budget.spent_ns() - windows.spent_ns, whole);
        windows.total_ns += passed;
        windows.total_cpu_ns += ran;
        windows.squared += whole * whole;
        ++windows.count;
    }
    for (size_t at = 0; at < watcher.functions.high(); ++at)
        if (watcher.functions.at(at)->code) close_whole(watcher.functions.at(at), now, End::other);
}

// A window is over when its time is, or much more than there was has been spent.
void end_window(int64_t now_ns) {
    if (!watcher.windows.open) return;
    const int64_t passed = now_ns - watcher.windows.opened.ns;
    if (passed < watcher.windows.length_ns &&
        watcher.budget.credit_ns() - uncharged(watcher.windows, static_cast<double>(passed)) >
            -watcher.budget.of_period_ns())
        return;
    watcher.turning = true;
    const Moment now = moment(now_ns);
    watcher.budget.earn(now);
    close_window(now);
    watcher.turning = false;
}

}  // namespace tachograph::calls
