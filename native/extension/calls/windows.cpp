// Windows in which all functions are watched, where they cannot be watched one by one.
#include "calls/watcher.h"

#include <algorithm>

namespace tachograph::calls {
namespace {

// The part of a window that watching takes, at least: while there is a profile function,
// CPython 3.11 runs every instruction the slow way, and that is in no event.
constexpr double kSlowed = 0.6;
constexpr int64_t kShortestWindowNs = 50'000;

// What a window of so much time has taken beyond what its events were charged.
double uncharged(const Windows& windows, double ran_ns) {
    const double charged = watcher.budget.spent_ns() - windows.interval.spent_ns;
    return std::max(kSlowed * ran_ns - charged, 0.0);
}

}  // namespace

void Windows::begin(Moment now) {
    *this = Windows{};
    began = now;
}

// The length of a window is settled in advance, from how many events there were before.
void open_window(Moment now, double stands_ns) {
    Windows& windows = watcher.windows;
    windows.open = true;
    windows.events = 0;
    const double affordable = watcher.budget.credit_ns() / watcher.budget.event_ns();
    const auto period = static_cast<double>(watcher.options.period_ns);
    double length = std::min(std::max(watcher.budget.credit_ns(), 0.0) / kSlowed, period);
    if (windows.event_rate > 0) length = std::min(affordable / windows.event_rate, length);
    const int64_t length_ns = std::max(static_cast<int64_t>(length), kShortestWindowNs);
    windows.interval.begin(now, length_ns, false, stands_ns, watcher.budget.spent_ns());
    windows.interval.closed_ns = windows.closed_ns;
    for (int skipped = watcher.events->open_window(); skipped > 0; --skipped)
        count_loss(TG_LOSS_CALL_WINDOWS_SKIPPED);
    for (size_t at = 0; at < watcher.functions.high(); ++at)
        if (watcher.functions.at(at)->code)
            open(watcher.functions.at(at), now, {length_ns, false}, stands_ns);
}

void close_window(Moment now) {
    Windows& windows = watcher.windows;
    if (!windows.open) return;
    watcher.events->close_window();
    windows.open = false;
    const Moment opened = windows.interval.opened;
    const int64_t passed = std::max<int64_t>(now.ns - opened.ns, 1);
    const int64_t ran = std::max<int64_t>(now.cpu_ns - opened.cpu_ns, 0);
    watcher.budget.charge(uncharged(windows, static_cast<double>(ran)));
    const double rate = windows.events / static_cast<double>(passed);
    windows.event_rate = windows.event_rate > 0 ? (windows.event_rate + rate) / 2 : rate;
    windows.closed_ns = now.ns;
    windows.total_ns += passed;
    windows.total_cpu_ns += ran;
    const Spent taken = spent();
    windows.interval.sample(now, taken.ns, taken.event_ns, &windows.drawn);
    for (size_t at = 0; at < watcher.functions.high(); ++at)
        if (watcher.functions.at(at)->code) close_whole(watcher.functions.at(at), now);
}

// A window is over when its time is, or much more than there was has been spent.
void end_window(int64_t now_ns) {
    if (!watcher.windows.open) return;
    Interval& window = watcher.windows.interval;
    const auto passed = static_cast<double>(now_ns - window.opened.ns);
    const bool afforded = watcher.budget.credit_ns() - uncharged(watcher.windows, passed) >
                          -watcher.budget.of_period_ns();
    if (afforded && !window.is_due(now_ns)) return;
    const Moment now = moment(now_ns);
    if (afforded && !window.has_length(now)) return;
    watcher.turning = true;
    watcher.budget.earn(now);
    close_window(now);
    watcher.turning = false;
}

}  // namespace tachograph::calls
