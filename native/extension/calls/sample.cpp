#include "calls/sample.h"

#include <algorithm>
#include <cmath>

namespace tachograph::calls {
namespace {

// The part of an interval that watching is taken to have had at most.
constexpr double kMostCost = 0.9;
constexpr double kEventsByCall = 2;
constexpr double kMostWeight = 512;

}  // namespace

void Drawn::add(double stands, double seen, double time_ns, double cost) {
    const double part = std::clamp(cost, 0.0, kMostCost);
    const double each = stands / (1 - part);
    const double all = each * seen;
    const double time = stands * time_ns;
    ++intervals;
    ns += time;
    calls += all;
    cost_calls += all * part / (1 - part);
    chance += all * each;
    calls_squared += all * all;
    calls_ns += all * time;
    ns_squared += time * time;
}

void Drawn::add_later(const Drawn& all, const Drawn& earlier) {
    intervals += all.intervals - earlier.intervals;
    ns += all.ns - earlier.ns;
    calls += all.calls - earlier.calls;
    cost_calls += all.cost_calls - earlier.cost_calls;
    chance += all.chance - earlier.chance;
    calls_squared += all.calls_squared - earlier.calls_squared;
    calls_ns += all.calls_ns - earlier.calls_ns;
    ns_squared += all.ns_squared - earlier.ns_squared;
}

void Interval::begin(Moment now, int64_t length, bool on_and_on, double stands, double spent) {
    opened = now;
    length_ns = length;
    goes_on = on_and_on;
    stands_ns = stands;
    spent_ns = spent;
    closed_ns = kNever;
    stayed = 0;
    calls = 0;
    early = 0;
    due_ns = goes_on && stands_ns <= 0 ? INT64_MAX : now.ns + length;
}

// Calls soon after the function was closed count for more than others, within bounds: the estimate
// would be one of chance.
double Interval::weight(double since_ns) const {
    const auto length = static_cast<double>(length_ns);
    if (since_ns >= length) return 1 / std::expm1(length / stands_ns);
    return 1 / std::expm1(std::max(since_ns, least()) / stands_ns + stayed);
}

double Interval::least() const {
    return std::max(static_cast<double>(length_ns) / kMostWeight - stayed * stands_ns, 0.0);
}

double Interval::weights(double ran) const {
    const auto length = static_cast<double>(length_ns);
    const auto from = static_cast<double>(opened.ns - closed_ns);
    const double to = from + ran;
    const auto until = [this](double since) {
        return std::log(-std::expm1(-since / stands_ns - stayed));
    };
    double sum = std::max(std::min(to, least()) - from, 0.0) * weight(0);
    if (to > least() && from < length)
        sum += stands_ns * (until(std::min(to, length)) - until(std::max(from, least())));
    return sum + std::max(to - std::max(from, length), 0.0) * weight(length);
}

void Interval::count(int64_t now_ns) {
    ++calls;
    early += extra(now_ns);
}

double Interval::extra(int64_t now_ns) const {
    const int64_t since = now_ns - closed_ns;
    if (since >= length_ns || stands_ns <= 0) return 0;
    return weight(static_cast<double>(since)) / weight(static_cast<double>(length_ns)) - 1;
}

double Interval::even(double whole) const {
    if (stands_ns <= 0 || whole <= 0) return 0;
    return weights(whole) / (weight(static_cast<double>(length_ns)) * whole) - 1;
}

void Interval::add_to(Drawn* to, double seen, double soon, double whole, double taken) const {
    if (stands_ns <= 0 || whole <= 0) return;
    const auto length = static_cast<double>(length_ns);
    // It tells of as much time as it was to have: also of the rest, if its calls have ended it, and
    // of no more, if other threads ran beside them.
    const double more = length / whole;
    const double each = weight(length);
    to->add(more * each, seen + soon, weights(whole) / each, taken / whole);
}

double Interval::of_sample(Moment now) const {
    const auto ran = static_cast<double>(std::max<int64_t>(now.cpu_ns - opened.cpu_ns, 0));
    const auto passed = static_cast<double>(std::max<int64_t>(now.ns - opened.ns, 1));
    return std::min(ran, static_cast<double>(length_ns) * std::max(1.0, ran / passed));
}

bool Interval::has_length(Moment now) {
    const int64_t left = length_ns - (now.cpu_ns - opened.cpu_ns);
    if (left > 0) due_ns = now.ns + left;
    return left <= 0;
}

void Interval::sample(Moment now, double spent, double event_ns, Drawn* drawn) {
    const auto ran = static_cast<double>(now.cpu_ns - opened.cpu_ns);
    if (stands_ns > 0 && ran > 0) {
        const auto length = static_cast<double>(length_ns);
        const double whole = of_sample(now);
        // One that was ended by its calls tells of the rest, too.
        const double more = calls >= kFewCalls || whole > length ? length / whole : 1;
        const double each = weight(length);
        const auto seen = static_cast<double>(calls);
        const double cost = std::max(spent - spent_ns, 0.0);
        const double own = std::min(kEventsByCall * event_ns * seen, cost);
        drawn->add(more * each, seen + early, weights(whole) / each,
                   own / whole + (cost - own) / ran);
    }
    stands_ns = 0;
}

}  // namespace tachograph::calls
