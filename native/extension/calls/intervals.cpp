// Intervals in which functions are watched.
#include "calls/events.h"
#include "calls/watcher.h"

#include <algorithm>
#include <cmath>

namespace tachograph::calls {
namespace {

// While functions were looked for the function was not called, or it would have been found. It is a
// row of its own, until that search began which has found it, or until a window of counting met it
// while there was no search: what is true of this time need not be true of what follows. In what is
// left of it the function may have been called.
void watched_in_search(Function* function, Moment until) {
    const Search& search = watcher.search;
    function->since = search.began;
    function->watched_ns = search.total_ns;
    function->watched_cpu_ns = search.total_cpu_ns;
    function->drawn = search.drawn;
    function->counted_until = search.counted;
    write(function, until, true);
}

// The function is watched from its first call on.
void begin_found(Function* function, Moment now) {
    const Search& search = watcher.search;
    if (!search.broken_off) {
        open(function, now, {0, true}, 0);
        return;
    }
    watched_in_search(function, search.interval.opened);
    open(function, search.interval.opened, {search.interval.length_ns, true},
         search.interval.stands_ns);
    if (function->interval.has_length(now)) function->sample(now, spent());
}

}  // namespace

Spent spent() { return {watcher.budget.spent_ns(), watcher.budget.event_ns()}; }

Function* learn(void* code, const void* frame, int64_t now_ns) {
    const Moment now = moment(now_ns);
    Function* function = watcher.functions.add(code, now);
    if (!function || !tg_set_code_extra(code, watcher.extra, function)) {
        if (function) watcher.functions.remove(function);
        count_loss(TG_LOSS_CALL_FUNCTIONS_UNWATCHED);
        return nullptr;
    }
    if (frame && watcher.begun) watcher.functions.describe(code, frame);
    ++watcher.not_open;  // until it is opened
    if (!watcher.events->selective) {
        function->since = watcher.windows.began;  // in all windows until now it was not called
        return function;
    }
    function->counted_until = watcher.counting.all;
    if (watcher.search.on)
        begin_found(function, now);
    else if (watcher.search.broken_off)
        watched_in_search(function, now);
    return function;
}

void write(Function* function, Moment now, bool last) {
    settle_counting(now);
    function->add_uncalled(watcher.windows.all);
    function->add_uncounted(watcher.counting.all);
    watcher.functions.write(function, now, last, spent());
}

void open(Function* function, Moment now, Length length, double stands_ns) {
    if (function->state == Watch::open) return;
    function->state = Watch::open;
    function->strays = 0;
    begin_interval(function, now, length, stands_ns);
    --watcher.not_open;
}

void begin_interval(Function* function, Moment now, Length length, double stands_ns) {
    function->interval.begin(now, length.ns, length.goes_on, stands_ns, watcher.budget.spent_ns());
    function->interval.closed_ns = function->closed_ns;
    function->interval.stayed = function->stayed;
    function->quota = watcher.quota.most(length.goes_on);
    function->steps = kStepsByCall * function->quota;
}

void close(Function* function, Moment now) {
    if (function->state != Watch::open) return;
    function->end_interval(now, spent());
    function->closed_ns = now.ns;
    function->stayed = 0;
    ++watcher.not_open;
    begin_lingering(function);
}

void begin_lingering(Function* function) {
    function->state = Watch::lingering;
    function->lingers = kFewCalls;
}

void rest(Function* function) {
    function->state = function->open_calls > 0 ? Watch::closing : Watch::closed;
}

void silence(Function* function) {
    rest(function);
    ++watcher.silences;
}

void close_whole(Function* function, Moment now) {
    close(function, now);
    function->give_up();
    silence(function);
}

namespace {

// Whether the length of the interval was over before this call. The sample is then taken.
bool is_over(Function* function, int64_t now_ns) {
    if (!function->interval.is_due(now_ns)) return false;
    const Moment now = moment(now_ns);
    if (!function->interval.has_length(now)) return false;
    function->sample(now, spent());
    return !function->interval.goes_on;
}

}  // namespace

Enough is_enough(Function* function, int64_t now_ns) {
    const bool over = is_over(function, now_ns);
    const bool often = function->seen >= kFewCalls;
    const bool afforded = often ? !watcher.budget.overdrawn() : !watcher.budget.exhausted();
    if (function->quota <= 1 || !afforded) return Enough::yes;
    return over ? Enough::by_length : Enough::no;
}

void close_or_stay(Function* function, Moment now) {
    const bool may_stay = watcher.budget.credit_ns() > 0 && watcher.stands_ns > 0;
    const double part = may_stay && drawn_stands_ns(function) > 0
                            ? kStay * (function->arm.rejected ? kAgain : 1)
                            : 0;
    const bool stays = watcher.chance.part() < part;
    if (stays) {
        function->end_interval(now, spent());
        function->closed_ns = now.ns;
    } else {
        close(function, now);
    }
    function->stayed = -std::log1p(-part);
    if (!stays) return;
    begin_interval(function, now, function->pace.length(watcher.quota, watcher.options.period_ns),
                   watcher.stands_ns / part_of_rounds(*function));
}

}  // namespace tachograph::calls
