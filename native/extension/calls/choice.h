// Which functions are worth watching on, decided from what their calls took so far: the arms of a
// bandit whose reward is the time of a call. Nothing here knows of Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tachograph::calls {

// The calls of one function that were seen since the choice began.
struct Arm {
    uint64_t calls = 0;
    double mean = 0;  // ns
    double squares = 0;
    double least = 0;
    double most = 0;
    double lowest =
        0;  // of an update: the least lower bound of this arm and those of a larger mean
    bool rejected = false;

    void add(double time_ns);
    double variance() const;
};

// How long the calls of a function are to be watched. An arm that is rejected stays so until
// `begin`.
class Choice {
  public:
    virtual ~Choice() = default;
    // All arms take part again. `calls` are those that there is a budget for.
    virtual void begin(uint64_t calls) = 0;
    // Rejects arms. `passed` is the part of the choice's time that is over, 0 to 1. The order of
    // `arms` is changed.
    virtual void update(std::span<Arm*> arms, double passed) = 0;
};

// Racing (Palkar et al., "Exploring the Use of Learning Algorithms for Efficient Performance
// Profiling", section 3.1): the arm with the least mean is rejected while the upper end of its
// interval is below the lower ends of all others. The intervals are empirical Bernstein bounds
// (Audibert, Munos and Szepesvari, "Exploration-exploitation tradeoff using variance estimates in
// multi-armed bandits", theorem 1), with the range of the times that were seen for the range.
class Racing final : public Choice {
  public:
    explicit Racing(double confidence) : doubt_(1 - confidence) {}
    void begin(uint64_t) override {}
    void update(std::span<Arm*> arms, double passed) override;

  private:
    double radius(const Arm& arm) const;
    double doubt_;
};

// Successive Rejects (Audibert, Bubeck and Munos, "Best arm identification in multi-armed bandits",
// figure 3) until `top` arms are left. Calls cannot be asked for: a phase ends when every arm has
// the calls of the phase, or when its part of the time is over.
class SuccessiveRejects final : public Choice {
  public:
    explicit SuccessiveRejects(size_t top) : top_(top) {}
    void begin(uint64_t calls) override;
    void update(std::span<Arm*> arms, double passed) override;

  private:
    size_t top_;
    uint64_t budget_ = 0;
    size_t first_ = 0;  // arms at the beginning
    size_t phase_ = 1;
};

}  // namespace tachograph::calls
