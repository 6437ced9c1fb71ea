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
// The part of the budget that events of exceptions may have.
constexpr double kExceptions = 0.125;
// The part of the budget that the beginnings of rounds may have.
constexpr double kBeginning = 0.25;
// The part of that which putting events into code may have: the rest is to look at all functions.
constexpr double kPutting = 0.75;
// The least part of the functions that takes part in a round.
constexpr double kLeastPart = 1.0 / 64;

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
    const int64_t begun_cpu_ns = thread_cpu();
    watcher.updated_ns = now_ns;
    const double passed = static_cast<double>(now_ns - watcher.period_ns) /
                          static_cast<double>(watcher.options.period_ns);
    watcher.choice->update(gather_arms(), passed);
    watcher.budget.charge_pause(static_cast<double>(thread_cpu() - begun_cpu_ns));
}

// The part of the functions that are not watched which take part in a round: to have the
// interpreter put events into their code has its part of the budget. A program that has imported
// much has hundreds of functions that are not called any more; once these are watched they cost
// nothing.
double part_of_round() {
    const double affordable = kPutting * kBeginning * watcher.budget.of_period_ns() / kRounds;
    const double all = watcher.opening_ns * static_cast<double>(watcher.not_open);
    return all > affordable ? std::max(affordable / all, kLeastPart) : 1;
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
    const double earned = kExceptions * watcher.budget.take_earnings();
    const double most = kExceptions * watcher.budget.of_period_ns();
    watcher.exceptions_ns = std::min(watcher.exceptions_ns + earned, most);
    if (watcher.exceptions_ignored && watcher.exceptions_ns > 0) {
        watcher.events->exceptions(true);
        watcher.exceptions_ignored = false;
    }
    g_listed_count = 0;
    uint64_t active = 0;
    for (size_t at = 0; at < watcher.functions.high(); ++at) {
        Function* function = watcher.functions.at(at);
        function->listed = false;
        if (!function->code) continue;
        if (function->seen > 0) ++active;
        if (now.ns >= function->next_row_ns) write(function, now, false);
        function->arm = Arm{};
        function->seen = 0;
        if (function->state == Watch::open && function->interval.goes_on) {
            function->steps = kStepsByCall * watcher.quota.on_and_on;
        }
    }
    // Counting has the other half.
    const double share = watcher.counting.possible ? 0.5 : 1;
    const auto calls = static_cast<uint64_t>(share * watcher.budget.of_period_ns() /
                                             (2 * watcher.budget.event_ns()));
    watcher.quota = Quota::of(calls, active);
    watcher.choice->begin(calls);
}

double drawn_stands_ns(const Function* function) {
    const bool counted = watcher.counting.possible && (!function || function->countable);
    return counted ? 0 : watcher.stands_ns;
}

double part_of_rounds(const Function& function) {
    return watcher.round_part * (function.arm.rejected ? kAgain : 1);
}

void begin_round(Moment now) {
    static struct {
        Function* function;
        double stands_ns;
    } watched[kMostFunctions];
    size_t count = 0;
    watcher.round_part = part_of_round();
    // All of them together: own times are known where every function that is called is watched.
    const bool again = watcher.chance.part() < kAgain;
    for (size_t at = 0; at < watcher.functions.high(); ++at) {
        Function* function = watcher.functions.at(at);
        if (!function->code) continue;
        if (function->arm.rejected && !again) continue;
        if (watcher.round_part < 1 && watcher.chance.part() >= watcher.round_part) continue;
        double stands_ns = drawn_stands_ns(function) / part_of_rounds(*function);
        if (function->state == Watch::open) {
            if (function->interval.goes_on) function->quota = watcher.quota.more(function->quota);
            if (function->interval.goes_on || !function->interval.has_length(now)) continue;
            close(function, now);
            stands_ns = 0;  // it was watched until now
        }
        auto* code = const_cast<void*>(function->code);
        const int64_t begun_cpu_ns = thread_cpu();
        watcher.events->unwatch(code);
        watcher.events->watch(code);
        const auto took = static_cast<double>(thread_cpu() - begun_cpu_ns);
        watcher.opening_ns += (took - watcher.opening_ns) / 16;
        watched[count++] = {function, stands_ns};
    }
    // All of this the program has stood still for, and its intervals begin when it goes on.
    const Moment begun = moment(calls::now());
    for (const auto& each : std::span(watched, count))
        if (each.function->code)
            open(each.function, begun,
                 each.function->pace.length(watcher.quota, watcher.options.period_ns),
                 each.stands_ns);
}

void plan(int64_t now_ns) {
    watcher.asked_ns.store(0);
    const double round = static_cast<double>(watcher.options.period_ns) / kRounds;
    // What was overdrawn is earned first.
    const double overdrawn = -watcher.budget.credit_ns() / watcher.budget.part();
    // With many functions it takes long to begin a round: there are fewer then.
    const double begins = watcher.round_ns / (watcher.budget.part() * kBeginning);
    watcher.stands_ns = std::max({round, overdrawn, begins});
    const auto wait = static_cast<int64_t>(watcher.chance.wait(watcher.stands_ns));
    watcher.next_round_ns.store(now_ns + wait, std::memory_order_relaxed);
}

void next_round(int64_t now_ns) {
    watcher.turning = true;
    const int64_t begun_cpu_ns = thread_cpu();
    const Moment now = moment(now_ns);
    watcher.budget.earn(now, watcher.api->sampling_ns());
    if (now_ns - watcher.period_ns >= watcher.options.period_ns) begin_period(now);
    if (watcher.events->selective && affords_round()) {
        begin_search(now);
        begin_round(now);
    }
    watcher.round_ns = static_cast<double>(thread_cpu() - begun_cpu_ns);
    watcher.budget.charge_pause(watcher.round_ns);
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
