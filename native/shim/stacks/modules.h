// The executable mappings of the process, written as MODULE records when first seen.
#pragma once

#include <cstdint>

namespace tachograph::modules {

// From the handler: notes a program counter that lies in no known mapping.
void saw(uint64_t pc);

// From the handler: a program counter lay in no known image.
void missed();

// From the hooks: executable code was mapped or unmapped.
void changed();

// Helper thread (and once at arming): reads /proc/self/maps if a hook has seen a change, or a
// program counter was unknown. Where that has brought nothing the last time, only at a `survey`.
void refresh(bool survey);

// Where the recording ends or the program is replaced, and no helper has worked: if a program
// counter was recorded that is unknown so far.
void refresh_at_end();

// Makes room for what children that are forked later are to know.
void open();

void forget();
// In a forked child: its spool has none yet. Its mappings are its parent's; where all of these are
// known, they are written when a program counter is in one of them, and the list is not read again.
void inherit();

}  // namespace tachograph::modules
