// The log of all processes that have this library: spool/processes.log (SPEC.md, "Process log").
// One write per record, and nothing else on the disk for a process that is not recorded.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

namespace tachograph::process_log {

inline constexpr int kStatusUnknown = INT_MIN;

// What `open` was told of the process's parent; -1: nothing.
struct Parent {
    int64_t pid = -1;
    int64_t time_ns = -1;
};

// At the process's start: it is listed in the log of this spool.
void open(const char* spool, const Parent& parent, int count, char* const* arguments);
// A forked child that is recorded as a process of its own.
void forked();
// It is about to be replaced by another program.
void replaced();
// It ends. Nothing if it is not listed, as in a child that was forked by native code.
void ended(int status);

// It is a Python that cannot be recorded; `reason` is one line.
void refused(const char* reason);

// Whether the calling process is listed; not so in a vfork child.
bool listed();
// "PID-TIME" of the latest process that was listed, itself or an ancestor; empty if there is none.
const char* identity();

}  // namespace tachograph::process_log
