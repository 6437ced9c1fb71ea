#include "calls/choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tachograph::calls {
namespace {

// Of fewer calls no interval means anything: such an arm neither leaves nor keeps others in.
constexpr uint64_t kFewestCalls = 4;

// An update takes the program's time, and looks at all arms in each phase.
constexpr int kMostPhases = 16;

// Behind `end` are those that are out or too young to take part.
std::span<Arm*> contenders(std::span<Arm*> arms) {
    const auto end = std::partition(arms.begin(), arms.end(), [](const Arm* arm) {
        return !arm->rejected && arm->calls >= kFewestCalls;
    });
    return arms.first(static_cast<size_t>(end - arms.begin()));
}

}  // namespace

void Arm::add(double time_ns) {
    ++calls;
    const double before = time_ns - mean;
    mean += before / static_cast<double>(calls);
    squares += before * (time_ns - mean);
    least = calls == 1 ? time_ns : std::min(least, time_ns);
    most = std::max(most, time_ns);
}

double Arm::variance() const { return calls > 0 ? squares / static_cast<double>(calls) : 0; }

double Racing::radius(const Arm& arm) const {
    const double n = static_cast<double>(arm.calls);
    const double doubt = std::log(3 / doubt_);
    return std::sqrt(2 * arm.variance() * doubt / n) + 3 * (arm.most - arm.least) * doubt / n;
}

void Racing::update(std::span<Arm*> arms, double) {
    const std::span<Arm*> racing = contenders(arms);
    // From the greatest mean to the least: what is left of the end is the arm to be considered.
    std::sort(racing.begin(), racing.end(),
              [](const Arm* a, const Arm* b) { return a->mean > b->mean; });
    double lowest = std::numeric_limits<double>::infinity();
    for (Arm* arm : racing) {
        lowest = std::min(lowest, arm->mean - radius(*arm));
        arm->lowest = lowest;
    }
    for (size_t left = racing.size(); left > 1; --left) {
        Arm& last = *racing[left - 1];
        if (last.mean + radius(last) >= racing[left - 2]->lowest) return;
        last.rejected = true;
    }
}

void SuccessiveRejects::begin(uint64_t calls) {
    budget_ = calls;
    first_ = 0;
    phase_ = 1;
}

void SuccessiveRejects::update(std::span<Arm*> arms, double passed) {
    std::span<Arm*> left = contenders(arms);
    if (phase_ == 1) first_ = std::max(first_, left.size());
    if (first_ <= top_) return;
    double harmonic = 0.5;
    for (size_t i = 2; i <= first_; ++i) harmonic += 1 / static_cast<double>(i);
    const size_t phases = first_ - top_;
    const double spare = budget_ > first_ ? static_cast<double>(budget_ - first_) : 0;
    for (int ended = 0; ended < kMostPhases && phase_ <= phases && left.size() > top_; ++ended) {
        const double due = spare / harmonic / static_cast<double>(first_ + 1 - phase_);
        const bool served = std::all_of(left.begin(), left.end(), [due](const Arm* arm) {
            return static_cast<double>(arm->calls) >= due;
        });
        if (!served && passed < static_cast<double>(phase_) / static_cast<double>(phases)) return;
        const auto worst = std::min_element(
            left.begin(), left.end(), [](const Arm* a, const Arm* b) { return a->mean < b->mean; });
        (*worst)->rejected = true;
        std::iter_swap(worst, left.end() - 1);
        left = left.first(left.size() - 1);
        ++phase_;
    }
}

}  // namespace tachograph::calls
