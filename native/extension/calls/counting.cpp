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
// Credit of so much of a period's budget doubles what a window may take, within bounds.
constexpr double kDoubles = 0.125;
constexpr double kLeastAllowance = 0.1;
constexpr double kMostAllowance = 8;
// The part of earlier windows that remains beside each new one.
constexpr double kKept = 0.875;
// What a look, and taking in a function, are charged at most: more is time in which the thread had
// no processor.
constexpr double kLongestNs = 100'000;

// Functions that were called since the window was last settled: few of all, and these are spread
// over much memory.
Function* g_counted[kMostFunctions];
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

void charge_events() {
    Counting& counting = watcher.counting;
    watcher.budget.charge_pause(counting.slowed * counting.uncharged_ns);
    counting.uncharged_ns = 0;
}

// Steps of the piece of code: each says which is next.
struct Piece {
    uint32_t values[64];
    uint32_t at;
};
using Step = void (*)(Piece* piece, uint32_t value);
constexpr Step kSteps[] = {
    [](Piece* piece, uint32_t value) { piece->at = piece->values[value % 64] + 1; },
    [](Piece* piece, uint32_t value) { piece->values[piece->at++ % 64] += value; },
    [](Piece* piece, uint32_t value) { piece->at += value & 1 ? 3 : piece->values[value % 64]; },
    [](Piece* piece, uint32_t value) { piece->values[value % 64] ^= piece->at += 5; },
};
constexpr uint32_t kPieceSteps = 400;

void measure_slowness() {
    Counting& counting = watcher.counting;
    if (counting.cost.piece <= 0) return;
    const double slowed = measure_piece() / counting.cost.piece;
    counting.slowed += (std::min(slowed, 4 * counting.slowed) - counting.slowed) / 8;
}

// A window is over, or a part of it; `sample` ns of it are the sample (0: none).
void settle(Moment now, double sample) {
    Counting& counting = watcher.counting;
    charge_events();
    const double taken = watcher.budget.spent_ns() - counting.interval.spent_ns;
    const int64_t ran = std::max<int64_t>(now.cpu_ns - counting.since.cpu_ns, 0);
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
        measure_slowness();
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
        const Moment now = moment(now_ns);
        charge_events();
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
        const auto took = static_cast<double>(calls::now() - now_ns);
        watcher.budget.charge_pause(std::min(took, kLongestNs));
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
    const int64_t begun_ns = now();
    if (watcher.search.on) return find(code, frame, begun_ns);
    Function* function = learn(code, frame, begun_ns);
    watcher.budget.charge_pause(std::min(static_cast<double>(now() - begun_ns), kLongestNs));
    return function;
}

}  // namespace

double measure_piece() {
    static Piece piece;
    static volatile Step steps[] = {kSteps[0], kSteps[1], kSteps[2], kSteps[3]};
    const int64_t begun_ns = now();
    for (uint32_t i = 0; i < kPieceSteps; ++i) steps[(piece.at ^ i) % 4](&piece, i);
    return static_cast<double>(now() - begun_ns);
}

double allowance_ns() {
    const Budget& budget = watcher.budget;
    const double credit = budget.credit_ns() / (kDoubles * budget.of_period_ns());
    return budget.part() * sample_ns() * std::clamp(1 + credit, kLeastAllowance, kMostAllowance);
}

void begin_counting(Moment opened, bool drawn) {
    Counting& counting = watcher.counting;
    counting.open = true;
    counting.goes_on = !drawn;
    counting.since = opened;
    counting.earned_ns = opened.ns;
    counting.look_at = 0;
    const int64_t length = sample_length();
    const double stands_ns = drawn ? sample_ns() / part_of_samples() : 0;
    counting.interval.begin(opened, length, !drawn, stands_ns, watcher.budget.spent_ns());
    // The time between windows is CPU time.
    const int64_t apart = opened.cpu_ns - counting.closed.cpu_ns;
    counting.early = drawn && apart < length;
    counting.interval.closed_ns = counting.early ? opened.ns - apart : kNever;
}

void charge_counting(int way) {
    watcher.budget.charge_pause(watcher.counting.slowed * watcher.counting.cost.event[way]);
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
    counting = fresh;
}

void settle_freed(Function* function) {
    function->add_uncounted(watcher.counting.all);
    function->counted_calls += static_cast<int64_t>(function->uncounted);
    function->uncounted = 0;
    function->early = 0;
}

}  // namespace tachograph::calls
