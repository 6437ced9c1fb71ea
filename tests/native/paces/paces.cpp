// Functions whose calls come at known moments, watched as the recorder does it, in a time of their
// own: the rows that would be recorded, many times over.
//
//     paces RUNS            # prints the rows of each run, then how many calls there were
//     paces RUNS windows    # windows of counted calls: how many there were, and are estimated
//     paces RUNS budget     # what so many events are charged in all, of which one in 50 had to
//     wait
#include "calls/budget.h"
#include "calls/pace.h"
#include "calls/sample.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace tachograph::calls;

constexpr double kSecond = 1e9;
constexpr int64_t kPeriodNs = 1'000'000'000;
constexpr double kSeconds = 5;

using Random = std::mt19937_64;
using Moments = std::vector<double>;

Moment at(double ns) { return {static_cast<int64_t>(ns), static_cast<int64_t>(ns)}; }

double exponential(Random& random, double mean) {
    return std::exponential_distribution<double>(1 / mean)(random);
}

// Moments that are `gap()` seconds apart, from `from` to `to` seconds.
Moments spaced(double from, double to, const std::function<double()>& gap) {
    Moments found;
    for (double now = from + gap(); now < to; now += gap()) found.push_back(now * kSecond);
    return found;
}

Moments steady(double from, double to, double by_second) {
    return spaced(from, to, [by_second] { return 1 / by_second; });
}

// Calls in quick succession, at moments that come by chance.
Moments bursts(Random& random, double every_s, int calls, double by_second) {
    Moments found;
    double end = 0;
    for (double begin = exponential(random, every_s); begin < kSeconds;
         begin = std::max(end, begin + exponential(random, every_s))) {
        for (int i = 0; i < calls && begin + i / by_second < kSeconds; ++i)
            found.push_back((begin + i / by_second) * kSecond);
        end = begin + calls / by_second;
    }
    return found;
}

// On for a part of a second, off for another, in turn.
Moments by_turns(double on_s, double off_s, double by_second) {
    Moments found;
    for (double begin = 0; begin < kSeconds; begin += on_s + off_s)
        for (double now = begin; now < std::min(begin + on_s, kSeconds); now += 1 / by_second)
            found.push_back(now * kSecond);
    return found;
}

struct Program {
    const char* name;
    bool rejected;  // the choice rejects the function after some calls in each period
    Moments (*calls)(Random&);
};

const Program kPrograms[] = {
    {"constant", false, [](Random&) { return steady(0, kSeconds, 20'000); }},
    {"constant, rejected", true, [](Random&) { return steady(0, kSeconds, 20'000); }},
    {"by chance", false,
     [](Random& random) {
         return spaced(0, kSeconds, [&] { return exponential(random, 1 / 20'000.0); });
     }},
    {"by chance, now and then", false,
     [](Random& random) {
         return spaced(0, kSeconds, [&] { return exponential(random, 1 / 3'000.0); });
     }},
    {"rare", false,
     [](Random& random) {
         return spaced(0, kSeconds, [&] { return exponential(random, 1 / 40.0); });
     }},
    {"bimodal", false,
     [](Random& random) {
         return spaced(0, kSeconds, [&] { return random() % 10 == 0 ? 800e-6 : 10e-6; });
     }},
    {"heavy-tailed", false,
     [](Random& random) {
         return spaced(0, kSeconds, [&] {
             return 10e-6 *
                    std::pow(std::uniform_real_distribution<double>(1e-9, 1)(random), -1 / 1.5);
         });
     }},
    {"slower from a moment on", false,
     [](Random& random) {
         const double turn = std::uniform_real_distribution<double>(1, 4)(random);
         Moments found = steady(0, turn, 100'000);
         const Moments after = steady(turn, kSeconds, 5'000);
         found.insert(found.end(), after.begin(), after.end());
         return found;
     }},
    {"stops", false, [](Random&) { return steady(0, 0.43 * kSeconds, 50'000); }},
    {"stops, rejected", true, [](Random&) { return steady(0, 0.43 * kSeconds, 50'000); }},
    {"stops soon", false, [](Random&) { return steady(0, 0.1, 50'000); }},
    {"begins late", false, [](Random&) { return steady(0.57 * kSeconds, kSeconds, 50'000); }},
    {"begins late, rejected", true,
     [](Random&) { return steady(0.57 * kSeconds, kSeconds, 50'000); }},
    {"more and more", false,
     [](Random&) {
         double now = 0;
         return spaced(0, kSeconds, [&now] {
             const double gap = 1 / (1'000 + 15'000 * now);
             now += gap;
             return gap;
         });
     }},
    {"small bursts", false, [](Random& random) { return bursts(random, 0.1, 100, 100'000); }},
    {"bursts", false, [](Random& random) { return bursts(random, 0.1, 1'000, 200'000); }},
    {"large bursts", false, [](Random& random) { return bursts(random, 0.4, 20'000, 400'000); }},
    {"by turns of milliseconds", false, [](Random&) { return by_turns(0.010, 0.021, 30'000); }},
    {"by turns of seconds", false, [](Random&) { return by_turns(0.7, 0.4, 30'000); }},
    {"by turns of seconds, rejected", true, [](Random&) { return by_turns(0.7, 0.4, 30'000); }},
};

// One function, and what the recorder does with it.
class Watched {
  public:
    Watched(const Program& program, int run, uint64_t seed) : program_(program), run_(run) {
        chance_.state ^= seed;
        next_round_ = static_cast<int64_t>(chance_.wait(kRoundNs));
    }

    void call(double now) {
        pass(now);
        ++all_;
        if (!known_) {
            known_ = true;
            since_ = now;
            begin(now, {0, true}, 0);
        }
        if (!open_) return;
        bool over = left_ <= 1;
        if (interval_.is_due(at(now).ns) && interval_.has_length(at(now))) {
            sample(now);
            over = over || !interval_.goes_on;
        }
        --left_;
        ++calls_;
        ++seen_;
        interval_.count(at(now).ns);
        if (!over) return;
        const bool by_length = left_ > 0 && !interval_.goes_on && interval_.has_length(at(now));
        end(now);
        stayed_ = 0;
        if (!by_length) return;
        const bool rejected = program_.rejected && seen_ > 150;
        const double part = rejected ? kAgain * kStay : kStay;
        stayed_ = -std::log1p(-part);
        if (chance_.part() < part)
            begin(now, pace_.length(quota_, kPeriodNs), rejected ? kRoundNs / kAgain : kRoundNs);
    }

    void finish() {
        pass(kSeconds * kSecond);
        row(kSeconds * kSecond, true);
        printf("calls\t%s\t%d\t%ld\n", program_.name, run_, all_);
    }

  private:
    static constexpr double kRoundNs = static_cast<double>(kPeriodNs) / kRounds;

    void pass(double now) {
        while (static_cast<double>(next_round_) <= now) {
            const auto round = static_cast<double>(next_round_);
            if (round >= period_ + kPeriodNs) begin_period(round);
            begin_round(round);
            next_round_ += static_cast<int64_t>(chance_.wait(kRoundNs)) + 1;
        }
    }

    void begin_period(double now) {
        period_ = now;
        seen_ = 0;
        if (!known_) return;
        if (now >= next_row_) row(now, false);
    }

    void begin_round(double now) {
        if (!known_) return;
        double stands = kRoundNs;
        if (program_.rejected && seen_ > 150) {
            if (chance_.part() >= kAgain) return;
            stands /= kAgain;
        }
        if (open_) {
            if (interval_.goes_on) left_ = quota_.more(left_);
            if (interval_.goes_on || !interval_.has_length(at(now))) return;
            end(now);
            stands = 0;
        }
        begin(now, pace_.length(quota_, kPeriodNs), stands);
    }

    void begin(double now, Length length, double stands) {
        open_ = true;
        interval_.begin(at(now), length.ns, length.goes_on, stands, 0);
        interval_.closed_ns = closed_;
        interval_.stayed = stayed_;
        left_ = quota_.most(length.goes_on);
    }

    void sample(double now) {
        interval_.sample(at(now), 0, 0, &drawn_);
        if (interval_.goes_on) interval_.due_ns = INT64_MAX;
    }

    void end(double now) {
        sample(now);
        const int64_t ran = at(now).ns - interval_.opened.ns;
        watched_ += static_cast<double>(ran);
        pace_.add(static_cast<double>(interval_.calls), ran, ran, 0);
        open_ = false;
        closed_ = at(now).ns;
    }

    void row(double now, bool last) {
        const bool on = open_ && (interval_.goes_on || last);
        if (on) end(now);
        if (on && !last) {
            open_ = true;
            interval_.begin(at(now), 0, true, 0, 0);
        }
        if (known_)
            printf(
                "row\t%s\t%d\t%.0f\t%.0f\t%.0f\t%ld\t%u\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%."
                "17g\t%.17g\n",
                program_.name, run_, since_, now, watched_, calls_, drawn_.intervals, drawn_.ns,
                drawn_.calls, drawn_.cost_calls, drawn_.chance, drawn_.calls_squared,
                drawn_.calls_ns, drawn_.ns_squared);
        since_ = now;
        watched_ = 0;
        calls_ = 0;
        drawn_ = Drawn{};
        row_period_ = std::min(2 * row_period_, 8 * kSecond);
        next_row_ = now + row_period_;
    }

    const Program& program_;
    int run_;
    Chance chance_;
    Quota quota_ = Quota::of(50'000, 20);
    Pace pace_;
    Interval interval_;
    Drawn drawn_;
    bool known_ = false;
    bool open_ = false;
    int64_t next_round_ = 0;
    double period_ = 0;
    int64_t closed_ = kNever;
    double stayed_ = 0;
    double since_ = 0;
    double row_period_ = kSecond;
    double next_row_ = kSecond;
    double watched_ = 0;
    long calls_ = 0;
    long all_ = 0;
    uint64_t left_ = 0;
    uint64_t seen_ = 0;  // in this period
};

// A thread that calls a function every `kAlone` of its CPU time, or `kBeside`, while two more
// threads run beside it for 40 ms in every 100. Windows of all functions begin at moments of CPU
// time.
class Beside {
  public:
    explicit Beside(uint64_t seed) : random_(seed) {}

    void run() {
        double next = sample();
        for (double wall = 0; wall < kSeconds * kSecond;) {
            const bool beside = std::fmod(wall, 100e6) < 40e6;
            const double gap = beside ? kBeside : kAlone;
            wall += gap;
            cpu_ += beside ? 3 * gap : gap;
            const Moment now = {static_cast<int64_t>(wall), static_cast<int64_t>(cpu_)};
            ++all_;
            if (open_) count(now);
            if (cpu_ < next) continue;
            next += sample();
            open_ = true;
            window_.begin(now, 500'000, false, kSampleNs, 0);
        }
        printf("%ld\t%.0f\n", all_, drawn_.calls / drawn_.ns * cpu_);
    }

  private:
    static constexpr double kSampleNs = 10e6;
    static constexpr double kAlone = 1'000;
    static constexpr double kBeside = 3'000;

    // Half an interval to one and a half, as the recorder's samples are apart.
    double sample() {
        return std::uniform_real_distribution<double>(0.5 * kSampleNs, 1.5 * kSampleNs)(random_);
    }

    void count(Moment now) {
        if (window_.is_due(now.ns) && window_.has_length(now)) {
            const double seen = static_cast<double>(window_.calls);
            window_.add_to(&drawn_, seen, 0, window_.of_sample(now), 0);
            open_ = false;
        } else {
            ++window_.calls;
        }
    }

    Random random_;
    Interval window_;
    Drawn drawn_;
    bool open_ = false;
    double cpu_ = 0;
    long all_ = 0;
};

}  // namespace

// Events of 100 ns, 60 of them in the recorder's code; some begin as another program has its turn.
void print_charged(int events) {
    Budget budget;
    budget.start(0.02, kPeriodNs);
    budget.learn_event(100);
    for (int i = 0; i < events; ++i) {
        const double before = budget.spent_ns();
        budget.charge_pause(budget.entry_ns());
        const double passed = i % 50 == 49 ? 10e6 : 60;
        budget.charge_body(passed, budget.spent_ns() - before - budget.entry_ns());
    }
    printf("%.9g\n", budget.spent_ns());
}

int main(int count, char** arguments) {
    const int runs = count > 1 ? atoi(arguments[1]) : 1;
    if (count > 2 && std::string(arguments[2]) == "budget") {
        print_charged(runs);
        return 0;
    }
    if (count > 2) {
        for (int run = 0; run < runs; ++run) Beside(static_cast<uint64_t>(run) + 1).run();
        return 0;
    }
    for (const Program& program : kPrograms) {
        for (int run = 0; run < runs; ++run) {
            Random random(static_cast<uint64_t>(run) + 1);
            Watched watched(program, run, random());
            for (const double moment : program.calls(random)) watched.call(moment);
            watched.finish();
        }
    }
    return 0;
}
