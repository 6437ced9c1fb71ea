#include "calls/pace.h"

#include "tachograph/mixing.h"

#include <algorithm>
#include <cmath>

namespace tachograph::calls {
namespace {

constexpr int64_t kShortestNs = 50'000;

// CPU time in which there are so many calls, within bounds.
int64_t time_for(double calls_per_ns, double calls, int64_t longest_ns) {
    if (calls_per_ns * static_cast<double>(longest_ns) <= calls) return longest_ns;
    return std::clamp(static_cast<int64_t>(calls / calls_per_ns), kShortestNs, longest_ns);
}

}  // namespace

Quota Quota::of(uint64_t calls, uint64_t functions) {
    const uint64_t each = calls / std::max<uint64_t>(functions, 1);
    const auto interval = static_cast<uint64_t>(static_cast<double>(each) / kRounds / (1 + kStay));
    return {std::max(kFewCalls, interval), std::max(kFewCalls, each / 2)};
}

int64_t longest_interval(int64_t period_ns) { return period_ns / kRounds / 2; }

void Pace::add(double seen, int64_t passed_ns, int64_t ran_ns, double cost_ns) {
    const auto without = [cost_ns](int64_t time) {
        const auto all = static_cast<double>(time);
        return std::max(all - cost_ns, all / 16);
    };
    calls = calls / 2 + seen;
    ns = ns / 2 + without(passed_ns);
    cpu_ns = cpu_ns / 2 + without(ran_ns);
}

Length Pace::length(const Quota& quota, int64_t period_ns) const {
    const double by_cpu = cpu_ns > 0 ? calls / cpu_ns : 0;
    const double by_wall = ns > 0 ? calls / ns : 0;
    return {time_for(by_cpu, static_cast<double>(quota.interval), longest_interval(period_ns)),
            by_wall * static_cast<double>(period_ns) <= static_cast<double>(quota.on_and_on)};
}

double Chance::part() { return uniform(&state); }

double Chance::wait(double mean) { return -mean * std::log1p(-part()); }

}  // namespace tachograph::calls
