// What an interval in which a function was watched tells of the time in which it was not.
// Nothing here knows of Python.
//
// Rounds come at moments that are drawn: as likely in the next microsecond as in any other, one in
// `stands_ns` on average. A function that is not watched when one comes is watched from there on,
// and its calls in the next `length_ns` of CPU time, a length that was settled before, are a
// sample.
//
// Say that the function was last watched at 0. A call at the time t is not seen if no round came
// before, with the probability exp(-t / stands). It is in a sample if a round came in the `m`
// before it, where m is `length_ns`, or t if that is less, and none came before those: the
// probability is exp(-(t - m) / stands) (1 - exp(-m / stands)). Each call in a sample that counts
// for 1 / (exp(m / stands) - 1), the ratio of the two, the sum has the number of the calls that
// were not seen as its mean, whatever the program does and whatever was seen before (Horvitz and
// Thompson, 1952). The same sum over the time in samples has the time that was not watched as its
// mean, and how long that was is known: so the ratio of the two sums, times that time, is a better
// estimate, which does not depend on how many rounds there happened to be (Sarndal, Swensson and
// Wretman, Model Assisted Survey Sampling, 1992, section 5.7).
//
// The ratio of all calls to all of the time in drawn intervals would not do: the lengths of
// intervals follow from how often the function was called before, and one ends with the first call
// after its length. Where a function is called rarely its intervals are long, and one that is not
// called any more is watched on and on: a pace of nothing, which nothing unwatched had, would
// outweigh all that was seen before. That is also why a function which was watched until the round
// is no sample, and why m is not always the length: a function that is watched through a pause is
// closed by the first call after it, and what is not seen are the calls that follow.
#pragma once

#include "calls/clock.h"
#include "calls/pace.h"

#include <cstdint>

namespace tachograph::calls {

// Sums over samples, of time and calls that were not watched, as far as each stands for them.
struct Drawn {
    uint32_t intervals = 0;
    double ns = 0;
    double calls = 0;
    double cost_calls = 0;  // how many more if watching had taken twice as long, to first order
    double chance = 0;      // their variance if each call came by chance
    double calls_squared = 0;
    double calls_ns = 0;
    double ns_squared = 0;

    // A sample of `calls` in `time_ns`, each of which stands for so many, and each ns for as many.
    // For the part `cost` of the time the program stood still.
    void add(double stands, double calls, double time_ns, double cost);
    // Those of `all` that `earlier` does not have: all of it was added to that before.
    void add_later(const Drawn& all, const Drawn& earlier);
};

inline constexpr int64_t kNever = INT64_MIN / 2;

struct Interval {
    Moment opened;
    int64_t length_ns = 0;  // CPU time whose calls are the sample
    bool goes_on = false;   // the interval is not over with its length
    double stands_ns = 0;   // mean time between moments at which it may begin; 0: it is no sample
    double spent_ns = 0;    // what watching had taken when it began
    int64_t closed_ns = kNever;  // when it was watched before
    double stayed = 0;           // -log(1 - the chance that it had been watched on then)
    uint64_t calls = 0;
    double early = 0;            // what calls soon after that count for beyond others
    int64_t due_ns = INT64_MAX;  // on the clock on the wall: its length is not over before

    void begin(Moment now, int64_t length, bool on_and_on, double stands, double spent);
    void count(int64_t now_ns);
    bool is_due(int64_t now_ns) const { return now_ns >= due_ns; }
    // Whether its length is over, by CPU time. If not, it is due later.
    bool has_length(Moment now);
    // Adds the sample, if there is one to be taken. The length is over, or the interval is.
    // `event_ns` is what an event takes.
    void sample(Moment now, double spent, double event_ns, Drawn* drawn);
    // The CPU time, up to this event, whose calls are the sample. Its length is looked at by the
    // clock on the wall, and where several threads run at once more has passed by then.
    double of_sample(Moment now) const;
    // The same of an interval of several functions: `seen` calls of one in `whole` ns, of which
    // counting has taken `taken`. `early` as of its own calls.
    void add_to(Drawn* drawn, double seen, double early, double whole, double taken) const;
    // What calls that are spread evenly over the first `whole` ns count for beyond others, each.
    double even(double whole) const;
    // What a call counts for beyond others, soon after the function was watched.
    double extra(int64_t now_ns) const;

  private:
    // What a call counts for that comes so long after the function was watched.
    double weight(double since_ns) const;
    // Calls that come sooner count for no more.
    double least() const;
    // The integral of it over `ran` ns from the beginning.
    double weights(double ran) const;
};

}  // namespace tachograph::calls
