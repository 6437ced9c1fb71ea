#include "calls/budget.h"

namespace tachograph::calls {

void Budget::start(double part, int64_t period_ns) {
    part_ = part;
    period_ns_ = period_ns;
    resumed_ = false;
}

void Budget::resume(Moment now) {
    const double first = kFirst * of_period_ns();
    if (resumed_) {
        credit_ns_ = std::max(credit_ns_, std::min(credit_ns_ + earned_by(now), first));
    } else {
        credit_ns_ = first;
        earnings_ns_ = of_period_ns();  // in advance
    }
    resumed_ = true;
    earned_ = now;
}

double Budget::earned_by(Moment now) const {
    const int64_t passed = std::min(now.ns - earned_.ns, now.cpu_ns - earned_.cpu_ns);
    return part_ * static_cast<double>(std::max<int64_t>(passed, 0));
}

void Budget::earn(Moment now) {
    const double earned = earned_by(now);
    credit_ns_ = std::min(credit_ns_ + earned, of_period_ns());
    earnings_ns_ += earned;
    earned_ = now;
}

void Budget::charge_body(double took_ns, double charged_ns) {
    spent_ns_ += std::max(took_ns - charged_ns, 0.0);
    credit_ns_ -= std::clamp(took_ns - charged_ns, 0.0, kLongestBodyNs);
    const double took = std::min(took_ns, 4 * body_ns_ + 50);
    body_ns_ += (took - body_ns_) / 64;
}

void Budget::learn_event(double event_ns) {
    entry_ns_ = event_ns > body_ns_ ? event_ns - body_ns_ : kGuessedEntryNs / 4;
}

Charged::Charged(Budget* budget, int64_t begun_ns) : budget_(budget), begun_ns_(begun_ns) {
    budget->charge_pause(budget->entry_ns());
    spent_ns_ = budget->spent_ns();
}

Charged::~Charged() {
    const auto took = static_cast<double>(now() - begun_ns_);
    budget_->charge_body(took, budget_->spent_ns() - spent_ns_);
}

}  // namespace tachograph::calls
