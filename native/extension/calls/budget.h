// What watching may take of the program's time, and what it has taken. Times are in ns.
#pragma once

#include "calls/clock.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tachograph::calls {

class Budget {
  public:
    // `part` of the time may be spent; `period_ns` is how long a part that was not spent is kept.
    void start(double part, int64_t period_ns);
    // Watching goes on here. There is a little credit at first; later what was left, and what the
    // time since earns of that little: a loop that is short may be entered very often.
    // `sampling_ns` is what samples have taken until now: they have it from the same budget.
    void resume(Moment now, int64_t sampling_ns);
    // By the clock on the wall and by CPU time, whichever went on less: a program that has a tenth
    // of a processor has a tenth of the time to spare.
    void earn(Moment now, int64_t sampling_ns);

    // One event, at what it was measured to take; anything else.
    void charge_event() { charge_pause(event_ns()); }
    void charge(double ns) { credit_ns_ -= ns; }
    // Something of the program that took so much, and goes on only after it.
    void charge_pause(double ns) {
        credit_ns_ -= ns;
        spent_ns_ += ns;
    }

    double credit_ns() const { return credit_ns_; }
    double spent_ns() const { return spent_ns_; }  // by events, in all
    double event_ns() const { return entry_ns_ + body_ns_; }
    // What an event takes outside of our code: of a call's two events as much lies within the call.
    double entry_ns() const { return entry_ns_; }
    // Earned since this was last asked.
    double take_earnings() { return std::exchange(earnings_ns_, 0.0); }
    double of_period_ns() const { return part_ * static_cast<double>(period_ns_); }
    // So much that what is called often is not to be watched any more; nothing at all.
    bool overdrawn() const { return credit_ns_ < -kOverdraft * of_period_ns(); }
    bool exhausted() const { return credit_ns_ < -of_period_ns(); }
    double part() const { return part_; }

    // What our own code took of an event, of which so much was charged already.
    void charge_body(double took_ns, double charged_ns);
    // What it took of `passed_ns` on the clock: in a longer time the thread had no processor, and
    // took what it takes of late.
    double body_of(double passed_ns) const {
        return passed_ns > kLongestBodyNs ? body_ns_ : passed_ns;
    }
    // What watching a call of nothing takes by event, in all.
    void learn_event(double event_ns);
    // While an event's cost is measured no budget is kept.
    void lift() { credit_ns_ = 1e18; }

  private:
    double earned_by(Moment now, int64_t sampling_ns) const;

    static constexpr double kLongestBodyNs = 20'000;
    // Before anything was measured.
    static constexpr double kGuessedEntryNs = 150;
    // Parts of what a period has: the credit at the beginning, and how far it may be overdrawn.
    static constexpr double kFirst = 0.125;
    static constexpr double kOverdraft = 0.125;
    // The part that watching has, whatever samples take.
    static constexpr double kLeast = 0.5;

    double part_ = 0;
    int64_t period_ns_ = 0;
    double credit_ns_ = 0;
    double spent_ns_ = 0;
    bool resumed_ = false;
    Moment earned_;            // when credit was last earned
    int64_t sampling_ns_ = 0;  // by then
    double earnings_ns_ = 0;
    double entry_ns_ = kGuessedEntryNs;  // what an event takes outside of our code, in a loop
    double body_ns_ = 0;                 // and in it, of late
};

// Charges an event: the way into our code as it was measured, and our code as it is.
class Charged {
  public:
    Charged(Budget* budget, int64_t begun_ns);
    ~Charged();
    Charged(const Charged&) = delete;
    Charged& operator=(const Charged&) = delete;

    // What watching had taken by a moment in this event.
    double spent_by(int64_t now_ns) const {
        return spent_ns_ + budget_->body_of(static_cast<double>(now_ns - begun_ns_));
    }

  private:
    Budget* budget_;
    int64_t begun_ns_;
    double spent_ns_;  // before our code
};

}  // namespace tachograph::calls
