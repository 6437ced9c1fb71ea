// What this process and the recording command pass each other as descriptors (WRITING.md): its
// memory files, which the recording command holds and copies into the spool; and files of the spool
// that this process may not make, as it has become another user, or lives under another root. No
// thread keeps a right for it, and no descriptor stays open.
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

// Passes on a segment, or the control file and the first segment, which are mapped already and have
// their headers. Waits for no answer, but as another user for that to the first ones: what was sent
// stays, whatever becomes of this process. 0 or an errno.
long hold_segment(int64_t start_ns, uint32_t sequence, uint64_t size, int fd);
long hold_process(int64_t start_ns, const Sizes& sizes, const int (&fds)[2]);

// Whether there is no recording command any more; one that is stopped or busy is there.
bool is_gone();

// Appends to the process log; false if the recording command is not there, or does not take it.
bool log(const ProcessRecord& record);

}  // namespace tachograph::fd_broker
