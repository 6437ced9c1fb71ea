// The search for functions that are called for the first time.
#include "calls/events.h"
#include "calls/watcher.h"

#include <algorithm>

namespace tachograph::calls {

void begin_search(Moment now) {
    Search& search = watcher.search;
    if (search.on) return;
    search.on = true;
    search.interval.begin(now, longest_interval(watcher.options.period_ns), false,
                          drawn_stands_ns(), watcher.budget.spent_ns());
    watcher.events->find(true);
}

void end_search(Moment now) {
    Search& search = watcher.search;
    if (!search.on) return;
    search.on = false;
    watcher.events->find(false);
    if (!search.broken_off) {
        search.broken_off = true;
        search.began = now;
        settle_counting(now);
        search.counted = watcher.counting.all;
        return;
    }
    const Moment opened = search.interval.opened;
    search.total_ns += std::max<int64_t>(now.ns - opened.ns, 0);
    search.total_cpu_ns += std::max<int64_t>(now.cpu_ns - opened.cpu_ns, 0);
    const Spent taken = spent();
    search.interval.sample(now, taken.ns, taken.event_ns, &search.drawn);
}

void forget_search(Moment now) {
    const bool on = watcher.search.on;
    watcher.search = Search{};
    watcher.search.on = on;
    watcher.search.interval.opened = watcher.search.began = now;
}

Function* find(void* code, const void* frame, int64_t now_ns) {
    watcher.turning = true;
    const int64_t begun_cpu_ns = thread_cpu();
    Function* function = learn(code, frame, now_ns);
    const int64_t learned_cpu_ns = thread_cpu();
    if (function) watcher.events->watch(code);
    const int64_t watched_cpu_ns = thread_cpu();
    // The interpreter has put the first event into this code as we have put in the others.
    const int64_t took = watched_cpu_ns - begun_cpu_ns + (watched_cpu_ns - learned_cpu_ns);
    watcher.budget.charge_pause(static_cast<double>(took));
    if (watcher.budget.exhausted()) {
        end_search(moment(now()));
        watcher.budget.charge_pause(static_cast<double>(thread_cpu() - watched_cpu_ns));
    }
    watcher.turning = false;
    return function;
}

}  // namespace tachograph::calls
