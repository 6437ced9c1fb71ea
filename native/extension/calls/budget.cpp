#include "calls/budget.h"

namespace tachograph::calls {

void Budget::start(double part, int64_t period_ns) {
    part_ = part;
    period_ns_ = period_ns;
}

void Budget::resume(Moment now) {
    earned_ = now;
    credit_ns_ = kFirst * of_period_ns();
    earnings_ns_ = of_period_ns();  // in advance
}

void Budget::earn(Moment now) {
    const int64_t passed = std::min(now.ns - earned_.ns, now.cpu_ns - earned_.cpu_ns);
    const double earned = part_ * static_cast<double>(std::max<int64_t>(passed, 0));
    credit_ns_ = std::min(credit_ns_ + earned, of_period_ns());
    earnings_ns_ += earned;
    earned_ = now;
}

void Budget::learn_body(double took_ns) {
    // An event in which the thread lost the processor is not what an event takes.
    const double took = std::min(took_ns, 4 * body_ns_ + 50);
    body_ns_ += (took - body_ns_) / 16;
    compare_bodies();
}

void Budget::learn_event(double event_ns, double inside_ns) {
    entry_ns_ = event_ns > body_ns_ ? event_ns - body_ns_ : kGuessedEntryNs / 4;
    loop_body_ns_ = body_ns_;
    compare_bodies();
    inside_ns_ = std::clamp(inside_ns, 0.0, 2 * event_ns);
}

Charged::Charged(Budget* budget, int64_t begun_ns) : budget_(budget), begun_ns_(begun_ns) {
    budget->charge_event();
    timed_ = budget->times_this_event();
}

Charged::~Charged() {
    if (timed_) budget_->learn_body(static_cast<double>(now() - begun_ns_));
}

}  // namespace tachograph::calls
