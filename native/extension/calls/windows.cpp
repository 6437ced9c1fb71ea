// Windows in which all functions are watched, where they cannot be watched one by one.
#include "calls/evaluated_frames.h"
#include "calls/watcher.h"

#include <algorithm>
#include <span>

namespace tachograph::calls {
namespace {

constexpr int64_t kShortestWindowNs = 50'000;
// Before it is known how many events there are, a window may last so many times the credit.
constexpr double kFirstLength = 2;
// Calls that are seen after a window, for own times of those that are open.
constexpr uint32_t kLingers = 63;

// Functions that were called since the last window began: few of all, and these are spread over
// much memory.
Function* g_called[kMostFunctions];
size_t g_called_count = 0;

void forget_called() {
    for (Function* function : std::span(g_called, g_called_count)) {
        function->in_window = false;
        if (function->code && function->state == Watch::lingering) rest(function);
    }
    g_called_count = 0;
}

// Ends of open calls are told, but not how a generator goes on meanwhile.
void close_for_a_while(Function* function, Moment now) {
    if (!function->code || function->state != Watch::open) return;
    function->told = watcher.windows.all;
    if (tg_is_generator(function->code))
        close_whole(function, now);
    else
        close(function, now);
}

}  // namespace

void Windows::begin(Moment now) {
    *this = Windows{};
    began = now;
}

void join_window(Function* function) {
    const Watch joined = watcher.windows.open ? Watch::open : Watch::lingering;
    if (function->state == joined) return;
    if (joined == Watch::open) {
        function->add_uncalled(watcher.windows.all);
        function->state = Watch::open;
        function->strays = 0;
        function->interval = watcher.windows.interval;
        --watcher.not_open;
    } else {
        begin_lingering(function);
    }
    if (function->in_window) return;
    function->in_window = true;
    g_called[g_called_count++] = function;
}

// The length of a window is settled in advance, from how many events there were before.
void open_window(Moment now) {
    Windows& windows = watcher.windows;
    forget_called();
    windows.open = true;
    windows.counts = !watcher.counting.open;
    windows.lingers = 0;
    windows.events = 0;
    // Where the budget has room for more, many windows tell more than long ones; the first one may
    // have all of a short program.
    int64_t longest_ns = longest_interval(watcher.options.period_ns);
    if (!windows.first)
        longest_ns = std::min<int64_t>(longest_ns, watcher.api->options()->interval_ns / 2);
    const auto longest = static_cast<double>(longest_ns);
    double length = std::max(watcher.budget.credit_ns(), 0.0) * kFirstLength;
    if (windows.event_rate > 0)
        length = allowance_ns() / watcher.budget.event_ns() / windows.event_rate;
    length = std::min(length, longest);
    const int64_t length_ns = std::max(static_cast<int64_t>(length), kShortestWindowNs);
    windows.interval.begin(now, length_ns, false, 0, watcher.budget.spent_ns());
}

void close_window(Moment now) {
    Windows& windows = watcher.windows;
    if (!windows.open) return;
    windows.open = false;
    windows.lingers = kLingers;
    const Moment opened = windows.interval.opened;
    const int64_t passed = std::max<int64_t>(now.ns - opened.ns, 1);
    const int64_t ran = std::max<int64_t>(now.cpu_ns - opened.cpu_ns, 0);
    const double rate = windows.events / static_cast<double>(passed);
    windows.event_rate = windows.event_rate > 0 ? (windows.event_rate + rate) / 2 : rate;
    windows.all.ns += passed;
    windows.all.cpu_ns += ran;
    if (windows.counts) {
        watcher.counting.all.ns += passed;
        watcher.counting.all.cpu_ns += ran;
        watcher.counting.closed = now;
        DictWrites& writes = watcher.counting.writes;
        writes.row()->counted_calls += static_cast<int64_t>(writes.pass_counted());
    }
    for (Function* function : std::span(g_called, g_called_count)) close_for_a_while(function, now);
    if (windows.first) begin_counting(now, false);
    windows.first = false;
    linger_in_frames();
}

void forget_lingering() {
    watcher.windows.lingers = 0;
    forget_called();
    ++watcher.silences;
}

void silence_window() {
    forget_lingering();
    leave_timing();
}

void shut_window(Moment now) {
    close_window(now);
    silence_window();
}

// A window is over when its time is, or much more than there was has been spent.
void end_window(int64_t now_ns) {
    if (!watcher.windows.open) return;
    Interval& window = watcher.windows.interval;
    const bool afforded = !watcher.budget.exhausted();
    if (afforded && !window.is_due(now_ns)) return;
    const Moment now = moment(now_ns);
    if (afforded && !window.has_length(now)) return;
    watcher.turning = true;
    const int64_t begun_cpu_ns = thread_cpu();
    watcher.budget.earn(now, watcher.api->sampling_ns());
    close_window(now);
    watcher.budget.charge_pause(static_cast<double>(thread_cpu() - begun_cpu_ns));
    watcher.turning = false;
}

}  // namespace tachograph::calls
