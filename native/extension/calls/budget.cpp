#include "calls/budget.h"

namespace tachograph::calls {

void Budget::start(double part, int64_t period_ns) {
    part_ = part;
    period_ns_ = period_ns;
    resumed_ = false;
}

void Budget::resume(Moment now, int64_t sampling_ns) {
    const double first = kFirst * of_period_ns();
    if (resumed_) {
        credit_ns_ =
            std::max(credit_ns_, std::min(credit_ns_ + earned_by(now, sampling_ns), first));
    } else {
        credit_ns_ = first;
        earnings_ns_ = of_period_ns();  // in advance
    }
    resumed_ = true;
    earned_ = now;
    sampling_ns_ = sampling_ns;
}

double Budget::earned_by(Moment now, int64_t sampling_ns) const {
    const auto ran = static_cast<double>(now.cpu_ns - earned_.cpu_ns);
    const double passed = std::min(static_cast<double>(now.ns - earned_.ns), ran);
    if (passed <= 0) return 0;
    // Of all threads, as CPU time is.
    const double sampling = static_cast<double>(sampling_ns - sampling_ns_) * passed / ran;
    return std::max(part_ * passed - sampling, kLeast * part_ * passed);
}

void Budget::earn(Moment now, int64_t sampling_ns) {
    const double earned = earned_by(now, sampling_ns);
    credit_ns_ = std::min(credit_ns_ + earned, of_period_ns());
    earnings_ns_ += earned;
    earned_ = now;
    sampling_ns_ = sampling_ns;
}

void Budget::charge_body(double took_ns, double charged_ns) {
    charge_pause(std::max(body_of(took_ns - charged_ns), 0.0));
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
