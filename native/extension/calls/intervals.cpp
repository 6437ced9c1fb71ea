// Intervals in which functions are watched.
#include "calls/events.h"
#include "calls/watcher.h"

#include <algorithm>

namespace tachograph::calls {
namespace {

// An interval is ended early if it has so many times the calls that it was to have.
constexpr uint64_t kSurprise = 8;

// While functions were looked for the function was not called, or it would have been found.
void watched_in_search(Function* function, Moment now) {
    const Search& search = watcher.search;
    if (!search.broken_off) return;
    function->since = search.began;
    function->watched_ns = search.total_ns + std::max<int64_t>(now.ns - search.opened.ns, 0);
    function->watched_cpu_ns =
        search.total_cpu_ns + std::max<int64_t>(now.cpu_ns - search.opened.cpu_ns, 0);
    function->drawn_ns = search.total_cpu_ns;
    function->intervals = search.count;
    function->watched_squared = search.squared;
    // A row of its own: what is true of this time need not be true of what follows.
    watcher.functions.write(function, now, true, watcher.budget.spent_ns());
}

// In all windows until now the function was watched, and not called.
void watched_in_all_windows(Function* function) {
    function->since = watcher.windows.began;
    function->watched_ns = watcher.windows.total_ns;
    function->watched_cpu_ns = watcher.windows.total_cpu_ns;
    function->drawn_ns = watcher.windows.total_cpu_ns;
    function->drawn_cost_ns = watcher.windows.cost_ns;
    function->intervals = watcher.windows.count;
    function->watched_squared = watcher.windows.squared;
}

}  // namespace

Function* learn(void* code, const void* frame, int64_t now_ns) {
    const Moment now = moment(now_ns);
    Function* function = watcher.functions.add(code, now);
    if (!function || !tg_set_code_extra(code, watcher.extra, function)) {
        if (function) watcher.functions.remove(function);
        count_loss(TG_LOSS_CALL_FUNCTIONS_UNWATCHED);
        return nullptr;
    }
    if (frame) watcher.functions.describe(code, frame);
    ++watcher.not_open;  // until it is opened
    if (watcher.events->selective) {
        watched_in_search(function, now);
        open(function, now, 0, false);
    } else {
        watched_in_all_windows(function);
        open(function, watcher.windows.opened, watcher.windows.length_ns, watcher.windows.drawn);
        function->spent_ns = watcher.windows.spent_ns;
    }
    return function;
}

void open(Function* function, Moment now, int64_t length_ns, bool drawn) {
    if (function->state == Watch::open) return;
    function->open(now, length_ns, drawn, watcher.budget.spent_ns());
    function->quota = watcher.quota * (length_ns > 0 ? kSurprise : 1);
    function->steps = kStepsByCall * function->quota;
    --watcher.not_open;
}

void close(Function* function, Moment now, End why) {
    if (function->state != Watch::open) return;
    function->end_interval(now, why, watcher.budget.spent_ns());
    function->state = function->open_calls > 0 ? Watch::closing : Watch::closed;
    ++watcher.not_open;
    ++watcher.closings;
}

void close_whole(Function* function, Moment now, End why) {
    close(function, now, why);
    function->give_up();
    function->state = Watch::closed;
}

bool is_enough(Function* function, int64_t now_ns) {
    const bool over =
        function->length_ns > 0 && now_ns - function->opened.ns >= function->length_ns;
    const bool often = function->seen >= kFewCalls;
    const bool afforded = often ? !watcher.budget.overdrawn() : !watcher.budget.exhausted();
    if (!over && function->quota > 0 && afforded) return false;
    close(function, moment(now_ns), over ? End::called : End::early);
    return true;
}

// It is settled in advance, from how often the function was called before: an interval that its own
// calls ended would tell too much of them.
int64_t interval_length(const Function& function) {
    const double rate = function.rate();
    const auto quota = static_cast<double>(watcher.quota);
    if (rate * static_cast<double>(watcher.options.period_ns) <= quota) return 0;
    const auto length = static_cast<int64_t>(quota / rate);
    return std::clamp(length, kShortestIntervalNs, watcher.options.period_ns / kRounds / 2);
}

}  // namespace tachograph::calls
