// The spool: memory-mapped segments, appended to without locks, also from signal handlers.
#pragma once

#include "spool/layout.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::spool {

// Makes the control file, with room for pending blocks where memory is recorded, and the first
// segment. Returns 0 or errno.
int open(const char* directory, uint64_t segment_size, int64_t start_ns, bool memory = false);

// In a forked child: unmaps the parent's segments. Then this process has no spool; the parent's
// control file stays mapped until the caller has unmapped it.
Control* unmap_segments_of_parent();
void unmap_control_of_parent(Control* parents);

// Unmaps the spool of a process that goes on without being recorded. False if a thread does not
// finish its record in time; then the segments stay mapped. Afterwards there are zeros at the
// address of the control file, for threads that still read it.
bool unmap_all();

// Room for a record of `size` bytes, padded and zeroed; nullptr if there is none, which is counted.
// Each reserved record must be committed; before that, readers do not see it. Lock-free and safe in
// signal handlers.
struct Ticket {
    uint8_t* record = nullptr;
    uint64_t header = 0;
    uint32_t sequence = 0;
};
Ticket reserve(Kind kind, size_t size);
void commit(const Ticket& ticket);

// Whether segment `sequence` is the one being filled (only a record in it may still grow).
bool is_current(uint32_t sequence);

// Helper thread: maps the next segment ahead of need, and unmaps segments that have no writers and
// were copied. Returns 0, or the errno of a failed allocation (the recording must then stop). A
// full disk is tried again each second instead; records that find no room are counted.
int maintain();
// Whether the process is so young that it has the small first segment only: most end soon.
bool in_first_moment();
inline constexpr int64_t kMomentNs = 3'000'000;
// Whether the current segment is half full and no other one is ready.
bool is_half_full();
// Copies memory files into the files of the spool, if the recording command, which does that
// otherwise, is gone. To be called before the process ends (`last`) or calls exec.
void save(bool last);
// From now on this thread makes the segments that its records need. The helper must have ended.
void begin_end();
// Makes the second segment, in a process that has no helper thread. 0 or an errno.
int prepare_second();

// Whether the recording command has asked for the current segment (it rotates), and the next one is
// ready.
bool may_start_next_segment();
// Helper thread: goes on to the next segment, if that is so.
void start_next_segment();

// Whether the recording command wants the recording of this process to end.
bool stop_requested();

// The number of a segment in the name of its file: six digits, or as many as it has. Writes up to
// ten, without an end; how many.
size_t write_number(char* at, uint32_t sequence);

void count(Loss loss, uint64_t n = 1);
Control* control();
// The table of pending blocks behind the control file; nullptr where memory is not recorded.
BlockRecord* pending_blocks();
// Bytes of the spool that are mapped in this process.
uint64_t mapped_bytes();
// Whether a mapping that begins there is one of them.
bool is_mapped(uintptr_t begin);

}  // namespace tachograph::spool
