// Windows in which all functions are watched, where they cannot be watched one by one.
#include "calls/watcher.h"

#include <algorithm>

namespace tachograph::calls {

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
    const double length =
        windows.event_rate > 0 ? std::min(affordable / windows.event_rate, period) : period;
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
    if (now_ns - watcher.windows.opened.ns < watcher.windows.length_ns &&
        watcher.budget.credit_ns() > -watcher.budget.of_period_ns())
        return;
    watcher.turning = true;
    watcher.budget.earn(now_ns);
    close_window(moment(now_ns));
    watcher.turning = false;
}

}  // namespace tachograph::calls
