#include "calls/counting.h"

#include "calls/evaluated_frames.h"
#include "calls/watcher.h"

#include <algorithm>
#include <span>

namespace tachograph::calls {
namespace {

// A window is at least as long, or none: shorter ones would tell of the time after a sample's
// handler, in which a program that has lost its caches is slower, and take as much to begin.
constexpr int64_t kShortestNs = 500'000;
constexpr int64_t kEarnNs = 1'000'000;
// A window goes on after its sample where there is so much of a period's budget left.
constexpr double kGoesOn = 0.05;
// Credit of so much of a period's budget doubles what a window may take, within bounds. What is
// overdrawn is earned by the rest: in the first second, in which functions are met, windows would
// else be a tenth as many, and an estimate would hardly know of it. Where functions are watched one
// by one those that are rarely called need the budget as well: else they are not watched all the
// time any more, and their numbers no longer exact.
constexpr double kDoubles = 0.125;
constexpr double kLeastAllowance = 0.5;
constexpr double kLeastBesideWatched = 0.25;
constexpr double kMostAllowance = 8;
// The part of earlier windows that remains beside each new one.
constexpr double kKept = 0.875;
constexpr uint32_t kPieceSteps = 60;
// How much longer than usual the piece of code takes at most: in more the thread had no processor.
constexpr double kMostSlower = 2;

// Functions that were called since the window was last settled: few of all, and these are spread
// over much memory.
Function* g_counted[kMostFunctions + 1];  // and writes to dictionaries
size_t g_counted_count = 0;

double sample_ns() { return static_cast<double>(watcher.api->options()->interval_ns); }

// The length of a sample is settled in advance, from what earlier ones have taken. Where the budget
// has room for short ones only, fewer samples open a window.
int64_t sample_length() {
    const Counting& counting = watcher.counting;
    const double longest = sample_ns() / 2;
    const double shortest = std::min(static_cast<double>(kShortestNs), longest);
    const double allowed = allowance_ns();
    const double cost = counting.ran_ns > 0 ? counting.taken_ns / counting.ran_ns : 0;
    const double afforded = cost * longest > allowed ? allowed / cost : longest;
    const double length = std::clamp(afforded - warm_up_ns(), shortest, longest);
    draw_windows(afforded / (length + warm_up_ns()));
    return static_cast<int64_t>(length);
}

// The interpreter's own code, as events are for the most part: beside another program on the same
// core it is slowed as much. Code that waits for its own results is not. All results are small, so
// that nothing is allocated, and nothing here raises or looks for signals.
void run_piece() {
    PyObject* numbers[4];
    for (long i = 0; i < 4; ++i) numbers[i] = PyLong_FromLong(i + 2);
    for (uint32_t i = 0; i < kPieceSteps; ++i) {
        PyObject* number = numbers[i % 4];
        PyObject* sum = PyNumber_Add(numbers[i / 4 % 4], number);
        PyObject* product = PyNumber_Multiply(sum, number);
        Py_DECREF(sum);
        Py_DECREF(product);
    }
    for (PyObject* number : numbers) Py_DECREF(number);
}

void measure_slowness() {
    Counting& counting = watcher.counting;
    if (counting.cost.piece <= 0) return;
    const double took =
        std::min(measure_piece(), kMostSlower * counting.usual * counting.cost.piece);
    counting.slowed = took / counting.cost.piece;
    counting.usual += (counting.slowed - counting.usual) / 8;
}

// As slow as the events were on average that are charged, if that has changed evenly, and by how
// far they were apart.
void charge_events(Moment now) {
    Counting& counting = watcher.counting;
    const double before = counting.slowed;
    measure_slowness();
    const double took = (before + counting.slowed) / 2 * counting.uncharged_ns;
    const auto ran = static_cast<double>(now.cpu_ns - counting.charged_cpu_ns);
    if (took > 0) counting.amid = counting.cost.surroundings.slowed(ran / took);
    watcher.budget.charge_pause(counting.amid * took);
    counting.uncharged_ns = 0;
    counting.charged_cpu_ns = now.cpu_ns;
}

void add_writes(double sample) {
    Counting& counting = watcher.counting;
    Function* row = counting.writes.row();
    row->uncounted = counting.writes.pass_counted();
    if (row->uncounted == 0) return;
    if (counting.early) row->early = counting.interval.even(sample) * double(row->uncounted);
    g_counted[g_counted_count++] = row;
}

// A window is over, or a part of it; `sample` ns of it are the sample (0: none).
void settle(Moment now, double sample) {
    Counting& counting = watcher.counting;
    charge_events(now);
    const double taken = watcher.budget.spent_ns() - counting.interval.spent_ns;
    const int64_t ran = std::max<int64_t>(now.cpu_ns - counting.since.cpu_ns, 0);
    add_writes(sample);
    const std::span functions(g_counted, g_counted_count);
    for (Function* function : functions) {
        function->in_counting = false;
        if (!function->code) continue;
        function->add_uncounted(counting.all);
        const auto calls = static_cast<double>(function->uncounted);
        if (sample > 0)
            counting.interval.add_to(&function->drawn, calls, function->early, sample, taken);
        function->counted_calls += static_cast<int64_t>(function->uncounted);
        function->uncounted = 0;
        function->early = 0;
    }
    const Drawn before = counting.all.drawn;
    counting.all.ns += std::max<int64_t>(now.ns - counting.since.ns, 0);
    counting.all.cpu_ns += ran;
    if (sample > 0) {
        counting.interval.add_to(&counting.all.drawn, 0, 0, sample, taken);
        counting.ran_ns = kKept * counting.ran_ns + static_cast<double>(ran);
        counting.taken_ns = kKept * counting.taken_ns + taken;
    }
    // Their own samples are in place of that of a function that was not called.
    for (Function* function : functions)
        if (function->code) function->counted_until.drawn.add_later(counting.all.drawn, before);
    g_counted_count = 0;
    counting.since = now;
}

void plan_look(int64_t now_ns) {
    Counting& counting = watcher.counting;
    int64_t wait = kEarnNs;
    if (!counting.goes_on) wait = std::min(wait, counting.interval.due_ns - now_ns);
    // Each event, where how long it came after the last window matters.
    if (counting.early || wait < 0) wait = 0;
    counting.look_at =
        ticks() + static_cast<uint64_t>(static_cast<double>(wait) * counting.cost.ticks_by_ns);
}

void close_counting(Moment now) {
    watcher.counting.open = false;
    watcher.counting.closed = now;
    leave_counting();
}

// Whether the window goes on after its sample.
bool end_sample(Moment now) {
    Counting& counting = watcher.counting;
    // This is the first event after its length, or so much has been spent that it is cut short.
    settle(now, counting.interval.of_sample(now));
    counting.goes_on = watcher.budget.credit_ns() > kGoesOn * watcher.budget.of_period_ns();
    counting.early = false;
    return counting.goes_on;
}

// Whether the window is not over.
bool look(int64_t now_ns) {
    Counting& counting = watcher.counting;
    watcher.budget.charge_pause(counting.cost.look);
    const bool due = !counting.goes_on && counting.interval.is_due(now_ns);
    if (due || now_ns - counting.earned_ns >= kEarnNs) {
        const int64_t begun_cpu_ns = thread_cpu();
        const Moment now = moment(now_ns);
        charge_events(now);
        const auto passed_ns = static_cast<double>(now_ns - counting.earned_ns);
        counting.earned_ns = now_ns;
        watcher.budget.earn(now, watcher.api->sampling_ns());
        bool stays = true;
        if (counting.goes_on) {
            stays = watcher.budget.credit_ns() >= 0;
            if (!stays) settle(now, 0);
        } else if (counting.interval.has_length(now) || watcher.budget.exhausted()) {
            stays = end_sample(now);
        }
        watcher.budget.charge_pause(static_cast<double>(thread_cpu() - begun_cpu_ns));
        if (!stays) {
            close_counting(now);
            return false;
        }
        if (counting.goes_on) time_beside(now, passed_ns);
    }
    plan_look(now_ns);
    return true;
}

Function* meet(void* code, const void* frame) {
    if (!tg_is_function(code)) return nullptr;
    if (watcher.search.on) return find(code, frame, now());
    const int64_t begun_cpu_ns = thread_cpu();
    Function* function = learn(code, frame, now());
    watcher.budget.charge_pause(static_cast<double>(thread_cpu() - begun_cpu_ns));
    return function;
}

}  // namespace

double measure_piece() {
    run_piece();
    const int64_t begun_ns = now();
    run_piece();
    return static_cast<double>(now() - begun_ns);
}

double allowance_ns() {
    const Budget& budget = watcher.budget;
    const double credit = budget.credit_ns() / (kDoubles * budget.of_period_ns());
    const double least = watcher.events->selective ? kLeastBesideWatched : kLeastAllowance;
    return budget.part() * sample_ns() * std::clamp(1 + credit, least, kMostAllowance);
}

void begin_counting(Moment opened, bool drawn) {
    Counting& counting = watcher.counting;
    counting.open = true;
    counting.goes_on = !drawn;
    counting.since = opened;
    counting.charged_cpu_ns = opened.cpu_ns;
    counting.earned_ns = opened.ns;
    counting.look_at = 0;
    const int64_t length = sample_length();
    const double stands_ns = drawn ? sample_ns() / part_of_samples() : 0;
    counting.interval.begin(opened, length, !drawn, stands_ns, watcher.budget.spent_ns());
    measure_slowness();
    watcher.budget.charge_pause(2 * counting.slowed * counting.cost.piece);
    // The time between windows is CPU time.
    const int64_t apart = opened.cpu_ns - counting.closed.cpu_ns;
    counting.early = drawn && apart < length;
    counting.interval.closed_ns = counting.early ? opened.ns - apart : kNever;
}

void charge_counting(int way) {
    const Counting& counting = watcher.counting;
    watcher.budget.charge_pause(counting.amid * counting.slowed * counting.cost.event[way]);
}

void count_event(void* code, const void* frame, bool begins, int way) {
    Counting& counting = watcher.counting;
    counting.uncharged_ns += counting.cost.event[way];
    int64_t now_ns = 0;
    if (ticks() >= counting.look_at) {
        now_ns = now();
        if (!look(now_ns)) return;
    }
    if (!begins) return;
    Function* function = watcher.known(code);
    if (!function) function = meet(code, frame);
    if (!function || !function->countable) return;
    if (!function->in_counting) {
        function->in_counting = true;
        g_counted[g_counted_count++] = function;
    }
    ++function->uncounted;
    if (counting.early) function->early += counting.interval.extra(now_ns);
}

void settle_counting(Moment now) {
    if (watcher.counting.open && watcher.counting.goes_on) settle(now, 0);
}

void end_counting(Moment now) {
    Counting& counting = watcher.counting;
    if (!counting.open) return;
    if (!counting.goes_on && counting.interval.has_length(now))
        end_sample(now);
    else
        settle(now, 0);
    close_counting(now);
}

void forget_counting() {
    Counting& counting = watcher.counting;
    for (Function* function : std::span(g_counted, g_counted_count)) {
        function->in_counting = false;
        function->uncounted = 0;
        function->early = 0;
    }
    g_counted_count = 0;
    Counting fresh;
    fresh.possible = counting.possible;
    fresh.cost = counting.cost;
    fresh.writes = counting.writes;
    fresh.writes.forget();
    counting = fresh;
}

void settle_freed(Function* function) {
    function->add_uncounted(watcher.counting.all);
    function->counted_calls += static_cast<int64_t>(function->uncounted);
    function->uncounted = 0;
    function->early = 0;
}

}  // namespace tachograph::calls
