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
    // Recording goes on here: there is a little credit, and none is earned for the time before.
    void resume(Moment now);
    // By the clock on the wall and by CPU time, whichever went on less: a program that has a tenth
    // of a processor has a tenth of the time to spare.
    void earn(Moment now);

    // One event, at what it was measured to take; one that is ignored; anything else.
    void charge_event() { charge_pause(event_ns()); }
    void charge_ignored() { charge_pause(slowed_ * ignored_ns_); }
    void charge(double ns) { credit_ns_ -= ns; }
    // Something of the program that took so much, and goes on only after it.
    void charge_pause(double ns) {
        credit_ns_ -= ns;
        spent_ns_ += ns;
    }

    double credit_ns() const { return credit_ns_; }
    double spent_ns() const { return spent_ns_; }  // by events, in all
    double event_ns() const { return entry_ns() + body_ns_; }
    // Of a call's two events, what lies between their readings of the clock.
    double inside_ns() const { return slowed_ * inside_ns_; }
    // Earned since this was last asked.
    double take_earnings() { return std::exchange(earnings_ns_, 0.0); }
    double body_ns() const { return body_ns_; }
    double of_period_ns() const { return part_ * static_cast<double>(period_ns_); }
    // So much that what is called often is not to be watched any more; nothing at all.
    bool overdrawn() const { return credit_ns_ < -kOverdraft * of_period_ns(); }
    bool exhausted() const { return credit_ns_ < -of_period_ns(); }
    double part() const { return part_; }

    // Whether this event's own code is to be timed, and what it took.
    bool times_this_event() { return ++events_ % kTimedEvents == 0; }
    void learn_body(double took_ns);
    // What watching a call of nothing takes by event, in all, and how long it seems to be.
    void learn_event(double event_ns, double inside_ns);
    void learn_ignored(double event_ns) { ignored_ns_ = std::max(event_ns, 0.0); }
    // While an event's cost is measured no budget is kept.
    void lift() { credit_ns_ = 1e18; }

  private:
    // One event of so many is timed.
    static constexpr uint32_t kTimedEvents = 32;
    // Before anything was measured.
    static constexpr double kGuessedEntryNs = 150;
    // Parts of what a period has: the credit at the beginning, and how far it may be overdrawn.
    static constexpr double kFirst = 0.125;
    static constexpr double kOverdraft = 0.125;
    static constexpr double kMostSlowed = 4;

    // In the program an event takes longer than in the loop in which it was measured: its code and
    // data are in no cache, and other processes share the processor. How much longer is seen of our
    // own code, which is timed in both; the way into it, which is the interpreter's, is taken to be
    // slowed as much.
    void compare_bodies() {
        slowed_ = loop_body_ns_ > 0 ? std::clamp(body_ns_ / loop_body_ns_, 1.0, kMostSlowed) : 1;
    }
    double entry_ns() const { return slowed_ * entry_ns_; }

    double part_ = 0;
    int64_t period_ns_ = 0;
    double credit_ns_ = 0;
    double spent_ns_ = 0;
    Moment earned_;  // when credit was last earned
    double earnings_ns_ = 0;
    double entry_ns_ = kGuessedEntryNs;  // what an event takes outside of our code, in a loop
    double body_ns_ = 0;                 // and in it, of late
    double loop_body_ns_ = 0;            // and in a loop
    double slowed_ = 1;
    double inside_ns_ = 0;
    double ignored_ns_ = kGuessedEntryNs;
    uint32_t events_ = 0;
};

// Charges an event, and times our own code now and then.
class Charged {
  public:
    Charged(Budget* budget, int64_t begun_ns);
    ~Charged();
    Charged(const Charged&) = delete;
    Charged& operator=(const Charged&) = delete;

  private:
    Budget* budget_;
    int64_t begun_ns_;
    bool timed_;
};

}  // namespace tachograph::calls
