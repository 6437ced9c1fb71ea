// The log of all processes that have this library (SPOOL.md, "Process log"): in the memory of the
// recording command, or where that cannot be reached, in the spool. One write per record, and
// nothing else for a process that is not recorded.
#pragma once

#include "spool/settings.h"

#include <climits>
#include <cstddef>
#include <cstdint>

namespace tachograph::process_log {

inline constexpr int kStatusUnknown = INT_MIN;

// What the process was started with; it must stay.
void started_with(int count, char* const* arguments);
// At the process's start, or where its recording begins later: it is listed in the log of this
// spool.
void open(const char* spool, const settings::Parent& parent);
// A forked child that is recorded as a process of its own.
void forked();
// The recording is over, and the process is not.
void close();
// It is about to be replaced by another program.
void replaced();
// It ends. Nothing if it is not listed, as in a child that was forked by native code.
void ended(int status);

// CPU time is the child's own, without that of children which it waited for. Negative: unknown.
struct ChildEnd {
    int32_t pid;
    int32_t status;  // exit status, negative for a signal
    int64_t time_ns;
    int64_t user_ns;
    int64_t system_ns;
    int64_t max_resident_bytes;
};

// It was told how a child of its own ended.
void reaped(const ChildEnd& end);
// Whether there is a log that a record could go into.
bool reachable();

// It is a Python that cannot be recorded; `reason` is one line.
void refused(const char* reason);

// Whether the calling process is listed; not so in a vfork child.
bool listed();

}  // namespace tachograph::process_log
