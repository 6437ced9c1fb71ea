#include "stacks/recording_budget.h"

#include "base/kernel.h"
#include "spool/settings.h"
#include "stacks/sources.h"

namespace tachograph::budget {
namespace {

// Of the CPU time of all threads.
int64_t per_mille() { return settings::options().budget_permille; }

}  // namespace

int64_t least_ns() { return per_mille() * 1'000'000; }

int64_t Share::left_ns(const char* source) {
    const int64_t program_ns = kernel::clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const Cost all = sources::cost();
    const int64_t others_ns = all.handlers_ns + all.ticks_ns - sources::cost(source).handlers_ns;
    const int64_t ran_ns = program_ns - program_ns_;
    const int64_t all_ns = ran_ns * per_mille() / 1000;
    const int64_t left = all_ns - (others_ns - others_ns_);
    const int64_t least = least_ns();
    program_ns_ = program_ns;
    others_ns_ = others_ns;
    return left > least ? left : least;
}

}  // namespace tachograph::budget
