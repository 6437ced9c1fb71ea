// The spool: memory-mapped segments, appended to without locks, also from signal handlers.
#pragma once

#include "spool/layout.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::spool {

// Makes the control file, with room for pending blocks where memory is recorded, and the first
// segment. Returns 0 or errno.
int open(const char* directory, uint64_t segment_size, int64_t start_ns, bool memory = false);

// In a forked child: what is mapped is the parent's. From here on this process has no spool; the
// parent's control file stays mapped, for the caller to unmap.
Control* leave();
void unmap(Control* parents);

// Of a process that goes on without being recorded: nothing of the spool is mapped any more. False
// if a thread is in the middle of a record for too long; then it stays. A thread that still looks
// at the control file finds zeros.
bool retire();

// Room for a record of `size` bytes (padded by us, zeroed), or nullptr, which is counted. What is
// reserved must be committed; nothing is visible to readers before.
struct Ticket {
    uint8_t* record = nullptr;
    uint64_t header = 0;
    uint32_t sequence = 0;
};
Ticket reserve(Kind kind, size_t size);
void commit(const Ticket& ticket);

// Whether segment `sequence` is the one being filled (only a record in it may still grow).
bool is_current(uint32_t sequence);

// Helper thread: maps the next segment ahead of need, unmaps those that no writer can still hold
// and that are safe. Returns 0, or the errno of a failed allocation (the recording must then stop).
// A disk that is full is asked again each second instead; rows that find no room are counted.
int maintain();
// Whether there is a small first segment only, because most processes so young soon end.
bool in_first_moment();
inline constexpr int64_t kMomentNs = 3'000'000;
// Copies what is in memory into the files of the spool, if it is and the recording command, whose
// work that is, is gone: before the process ends (`last`) or replaces its program.
void save(bool last);
// Where there is no helper thread, so that there is a second segment at least. 0 or an errno.
int prepare_second();

// Whether the recording command wants the current segment to be left, so that it can take it away,
// and the next one is ready.
bool can_turn();
// Helper thread: leaves it, if that is so.
void turn();

// Whether the recording command wants the recording of this process to end.
bool stop_requested();

void count(Loss loss, uint64_t n = 1);
Control* control();
// The places behind the control file; nullptr where memory is not recorded.
BlockRecord* pending_blocks();
// Of the spool, in this process.
uint64_t mapped_bytes();

}  // namespace tachograph::spool
