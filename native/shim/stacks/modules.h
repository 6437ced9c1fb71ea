// The executable mappings of the process, written as MODULE records when first seen.
#pragma once

#include <cstdint>

namespace tachograph::modules {

// From the handler: notes a program counter that lies in no known mapping.
void saw(uint64_t pc);

// From the handler: a program counter lay in no known image.
void missed();

// Helper thread (and once at arming): reads /proc/self/maps if some program counter was unknown.
void refresh(bool force);

// In a forked child: its spool has none yet.
void forget();

}  // namespace tachograph::modules
