// Where the accesses come from that are watched: a sample of a thread leads to one of its accesses.
//
// The one source that there is decodes the code that the thread is about to run (operands.h). It
// needs nothing of the machine, and samples time. A processor with precise events (PEBS, IBS) can
// be asked instead, which samples accesses and tells instruction and address itself: such a source
// has its own samples, comes first in the table of access_source.cpp, and nothing else changes.
#pragma once

#include "redundancy/operands.h"
#include "stacks/sources.h"

#include <cstdint>

namespace tachograph::redundancy {

struct AccessSource {
    const char* name;
    // Asked once, before the first sample and outside of signal handlers; whether this machine has
    // it. It may prepare itself.
    bool (*usable)();
    // The access of a sample that is wanted. In a signal handler: no allocation, no lock.
    // `random`: the thread's own, for what is left to chance.
    operands::Next (*access_of)(const Sample& sample, const operands::Wanted& wanted,
                                uint64_t* random, operands::Access* out);
};

// The first usable one.
const AccessSource& choose_source();

}  // namespace tachograph::redundancy
