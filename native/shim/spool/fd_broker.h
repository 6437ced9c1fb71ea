// Files of the spool that this process may not make: it has become another user, or lives under
// another root. The recording command, if it is root, makes them and passes them on as descriptors
// (SPEC.md, "Files that the recording command makes"). No thread keeps a right for it, and no
// descriptor stays open.
#pragma once

#include "spool/layout.h"

#include <cstdint>

namespace tachograph::fd_broker {

// Whether the recording command may be able to do what this process could not: an errno of open.
bool may_help(long error);

// Segment `sequence`, mapped; the process is the one that began to be recorded at `start_ns`.
// 0, EAGAIN if no answer came in time, or an errno; `error`, why we could not do it ourselves, if
// the recording command is not there, or could not either.
long segment(long error, int64_t start_ns, uint32_t sequence, uint64_t size, uint8_t** base);

// The control file and the first segment, both or none. 0 or an errno, as above.
struct Sizes {
    uint64_t control;
    uint64_t segment;
};
long process(long error, int64_t start_ns, const Sizes& sizes, uint8_t* (&bases)[2]);

// Appends to the process log.
void log(const ProcessRecord& record);

}  // namespace tachograph::fd_broker
