#include "redundancy/trap_budget.h"

#include "base/kernel.h"
#include "redundancy/slow_code.h"
#include "redundancy/watchpoint.h"

#include <algorithm>
#include <atomic>
#include <csignal>

namespace tachograph::redundancy {
namespace {

constexpr int64_t kPerMille = 20;  // of a thread's CPU time
// The sampled access, the next one, and the Python frame that goes on.
constexpr int64_t kTrapsOfSample = 3;
// A thread does not save up for more.
constexpr int64_t kMostSamples = 4;
constexpr int64_t kUsualNs = 60'000;
constexpr int kTrials = 7;

constinit std::atomic<int64_t> g_trap_ns{kUsualNs};

int64_t sample_ns() { return kTrapsOfSample * budget::trap_ns(); }

int64_t earned(int64_t cpu_ns) { return cpu_ns * kPerMille / 1000; }

}  // namespace

namespace budget {

int measure(uint64_t data) {
    Watchpoint trial;
    if (const int error = trial.open(data)) return error;
    alignas(8) volatile uint64_t watched = 0;
    sigset_t blocked;
    const bool comes =
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked) == 0 && sigismember(&blocked, SIGTRAP) == 0;
    if (comes && trial.arm(Watchpoint::On::store, reinterpret_cast<uint64_t>(&watched), 8)) {
        int64_t taken[kTrials];
        for (int64_t& each : taken) {
            const int64_t before = kernel::own_cpu_ns();
            watched = watched + 1;
            each = kernel::own_cpu_ns() - before;
        }
        std::nth_element(taken, taken + kTrials / 2, taken + kTrials);
        g_trap_ns.store(taken[kTrials / 2], std::memory_order_relaxed);
        const slow_code::Times with = slow_code::measure();
        trial.disarm();
        slow_code::compare(slow_code::measure(), with);
    }
    trial.close();
    return 0;
}

int64_t trap_ns() { return g_trap_ns.load(std::memory_order_relaxed); }

}  // namespace budget

void Account::earn(int64_t cpu_ns) {
    credit_ns_ += earned(cpu_ns);
    const int64_t most = kMostSamples * sample_ns();
    if (credit_ns_ > most) credit_ns_ = most;
}

bool Account::overdrawn(int64_t lost_ns, int64_t cpu_ns) const {
    return credit_ns_ < 0 && lost_ns > earned(cpu_ns);
}

bool Account::affords(double random) const {
    return static_cast<double>(credit_ns_) > 2 * random * static_cast<double>(sample_ns());
}

}  // namespace tachograph::redundancy
