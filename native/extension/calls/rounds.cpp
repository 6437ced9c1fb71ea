// Periods and rounds: which functions are watched next, and when.
#include "calls/clock.h"
#include "calls/watcher.h"

#include <algorithm>
#include <span>

namespace tachograph::calls {
namespace {

// Where the main thread does not come to it for so long, another one does.
constexpr int64_t kLateNs = 50'000'000;
// How often the choice looks at what was learned.
constexpr int64_t kUpdateNs = 10'000'000;
// The part of the budget that the beginnings of rounds may have.
constexpr double kBeginning = 0.25;
// What such a look is charged at most: more is time in which the thread had no processor.
constexpr int64_t kLongestUpdateNs = 1'000'000;

double random_part() {
    watcher.random ^= watcher.random << 13;
    watcher.random ^= watcher.random >> 7;
    watcher.random ^= watcher.random << 17;
    return static_cast<double>(watcher.random >> 11) / 9007199254740992.0;
}

// Functions that were called in this period: few of all, and these are spread over much memory.
Function* g_listed[kMostFunctions];
size_t g_listed_count = 0;

std::span<Arm*> gather_arms() {
    static Arm* arms[kMostFunctions];
    size_t count = 0;
    for (size_t at = 0; at < g_listed_count; ++at) {
        Function* function = g_listed[at];
        if (function->code && function->seen > 0) arms[count++] = &function->arm;
    }
    return {arms, count};
}

void update(int64_t now_ns) {
    watcher.updated_ns = now_ns;
    const double passed = static_cast<double>(now_ns - watcher.period_ns) /
                          static_cast<double>(watcher.options.period_ns);
    watcher.choice->update(gather_arms(), passed);
    watcher.budget.charge_pause(static_cast<double>(std::min(now() - now_ns, kLongestUpdateNs)));
}

// Credit that a round needs.
bool affords_round() {
    return watcher.budget.credit_ns() > watcher.budget.of_period_ns() / kRounds / 2;
}

}  // namespace

void list_arm(Function* function) {
    if (function->listed) return;
    function->listed = true;
    g_listed[g_listed_count++] = function;
}

// All functions take part again.
void begin_period(Moment now) {
    watcher.period_ns = watcher.updated_ns = now.ns;
    watcher.exceptions_ns = 0;
    if (watcher.exceptions_ignored) watcher.events->exceptions(true);
    watcher.exceptions_ignored = false;
    g_listed_count = 0;
    uint64_t active = 0;
    for (size_t at = 0; at < watcher.functions.high(); ++at) {
        Function* function = watcher.functions.at(at);
        function->listed = false;
        if (!function->code) continue;
        if (function->seen > 0) ++active;
        if (now.ns >= function->next_row_ns)
            watcher.functions.write(function, now, false, watcher.budget.spent_ns());
        function->arm = Arm{};
        function->seen = 0;
        function->rate_calls /= 2;  // what is long ago counts less
        function->rate_ns /= 2;
        if (function->state == Watch::open && function->length_ns == 0) {
            function->quota = watcher.quota;
            function->steps = kStepsByCall * watcher.quota;
        }
    }
    const auto calls =
        static_cast<uint64_t>(watcher.budget.of_period_ns() / (2 * watcher.budget.event_ns()));
    watcher.quota = std::max(kFewCalls, calls / std::max<uint64_t>(active, 1) / kRounds);
    watcher.choice->begin(calls);
}

void begin_round(Moment now) {
    static Function* watched[kMostFunctions];
    size_t count = 0;
    for (size_t at = 0; at < watcher.functions.high(); ++at) {
        Function* function = watcher.functions.at(at);
        if (!function->code || function->arm.rejected) continue;
        if (function->state == Watch::open) {
            if (function->length_ns == 0 || now.ns - function->opened.ns < function->length_ns)
                continue;
            close(function, now, End::other);
        }
        auto* code = const_cast<void*>(function->code);
        watcher.events->unwatch(code);
        watcher.events->watch(code);
        watched[count++] = function;
    }
    // All of this the program has stood still for, and its intervals begin when it goes on.
    const Moment begun = moment(calls::now());
    for (Function* function : std::span(watched, count))
        if (function->code) open(function, begun, interval_length(*function), true);
}

void plan(int64_t now_ns) {
    const double round = static_cast<double>(watcher.options.period_ns) / kRounds;
    // What was overdrawn is earned first. The beginnings are random, so that they do not keep step
    // with anything that the program does.
    const double overdrawn = -watcher.budget.credit_ns() / watcher.budget.part();
    // With many functions it takes long to begin a round: there are fewer then.
    const double begins = watcher.round_ns / (watcher.budget.part() * kBeginning);
    const double wait = std::max({round, overdrawn, begins}) * (0.5 + random_part());
    watcher.asked_ns.store(0);
    // A window whose program has no events is closed by the next round.
    watcher.windows.planned = watcher.windows.open;
    const int64_t next_ns = watcher.windows.open
                                ? watcher.windows.opened.ns + watcher.windows.length_ns
                                : now_ns + static_cast<int64_t>(wait);
    watcher.next_round_ns.store(next_ns, std::memory_order_relaxed);
}

void next_round(int64_t now_ns) {
    watcher.turning = true;
    const int64_t begun_cpu_ns = thread_cpu();
    const Moment now = moment(now_ns);
    watcher.budget.earn(now);
    const bool planned = watcher.windows.planned;
    if (watcher.windows.open && now_ns - watcher.windows.opened.ns >= watcher.windows.length_ns)
        close_window(now);
    if (now_ns - watcher.period_ns >= watcher.options.period_ns) begin_period(now);
    if (affords_round() && !watcher.events->selective) {
        // Directly after another one a window would not begin at random.
        if (!watcher.windows.open && !planned) open_window(now, true);
    } else if (affords_round()) {
        begin_search(now);
        begin_round(now);
    }
    watcher.round_ns = static_cast<double>(thread_cpu() - begun_cpu_ns);
    watcher.budget.charge(watcher.round_ns);
    plan(now_ns);
    watcher.turning = false;
}

void pass(int64_t now_ns) {
    const int64_t asked = watcher.asked_ns.load(std::memory_order_relaxed);
    if (asked != 0 && now_ns - asked > kLateNs)
        next_round(now_ns);
    else if (now_ns - watcher.updated_ns >= kUpdateNs)
        update(now_ns);
}

bool wants_turn(int64_t now_ns) {
    if (now_ns < watcher.next_round_ns.load(std::memory_order_relaxed)) return false;
    int64_t none = 0;
    return watcher.asked_ns.compare_exchange_strong(none, now_ns);
}

void put_off() { watcher.asked_ns.store(0); }

void turn() {
    const int64_t asked = watcher.asked_ns.load();
    if (watcher.begun && watcher.active() && asked != 0)
        next_round(now());
    else
        put_off();
}

}  // namespace tachograph::calls
