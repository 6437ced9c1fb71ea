// How often a function is called of late, and how long it is to be watched for that; and when.
// Nothing here knows of Python.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tachograph::calls {

// Of each function that is called at all so many calls are to be seen in an interval, whatever they
// cost: those that are called rarely are most often those that take long.
inline constexpr uint64_t kFewCalls = 32;
// A period has so many rounds, in each of which a function can be watched for an interval.
inline constexpr int kRounds = 32;
inline constexpr uint64_t kSurprise = 8;
// The part of the rounds in which a function takes part that was rejected: which ones is left to
// chance. Else nothing would be known of how often it is called until the next period.
inline constexpr double kAgain = 0.125;
// The part of the intervals after which the function is watched for another one at once: which ones
// is left to chance. An interval ends with a call, and calls that come in bursts are those that
// follow.
inline constexpr double kStay = 0.25;

// Calls that there is a budget for: in an interval, and in a period of one that goes on.
struct Quota {
    uint64_t interval = 4 * kFewCalls;
    uint64_t on_and_on = 4 * kFewCalls;

    // At which an interval is ended early. It is much more than was expected, so that whole bursts
    // are seen where there is a budget for them.
    uint64_t most(bool goes_on) const {
        return goes_on ? on_and_on : std::max(on_and_on, interval * kSurprise);
    }
    // What one that goes on and has so many left has after a round.
    uint64_t more(uint64_t left) const { return std::min(left + interval, on_and_on); }
    // `calls` in a period, of so many functions.
    static Quota of(uint64_t calls, uint64_t functions);
};

// How long a function is to be watched: CPU time whose calls are a sample, and whether it is
// watched on after that.
struct Length {
    int64_t ns;
    bool goes_on;
};

int64_t longest_interval(int64_t period_ns);

// Of the last interval, and half as much of the one before, and so on.
struct Pace {
    double calls = 0;
    double ns = 0;
    double cpu_ns = 0;

    // An interval, in which watching took `cost_ns`.
    void add(double seen, int64_t passed_ns, int64_t ran_ns, double cost_ns);
    // The length of the next one. It follows from earlier intervals only: one that its own calls
    // ended would tell too much of them.
    Length length(const Quota& quota, int64_t period_ns) const;
};

// A sequence of random numbers.
struct Chance {
    uint64_t state = 0;

    double part();  // from 0 to 1
    // A time to wait, of which nothing is known but its mean: however long it has lasted, it is as
    // long again.
    double wait(double mean);
};

}  // namespace tachograph::calls
