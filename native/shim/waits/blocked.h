// What a thread is blocked in, as the kernel tells it (/proc/self/task/TID/syscall).
#pragma once

#include "spool/layout.h"

#include <sys/types.h>
#include <cstddef>
#include <cstdint>

namespace tachograph::blocked {

struct Call {
    int32_t number = -1;  // system call, -1 unknown
    uint64_t pc = 0;      // user program counter, 0 unknown
    uint64_t sp = 0;      // user stack pointer, 0 unknown
    uint64_t futex = 0;   // address of the futex that it waits for, 0 none or unknown
    Target target = Target::unknown;
};

// Helper thread only. A thread that is runnable, not blocked, has target `cpu`.
Call look(pid_t tid);
// How long a thread was ready to run and had no processor, in all; -1 if the kernel does not tell.
int64_t ready_ns(pid_t tid);
// Whether a thread has ended and is still listed; then also its status, as wait() gives it.
bool is_dead(pid_t tid, int* status = nullptr);
// The system's name of a thread (at most 15 bytes); returns its length.
size_t read_name(pid_t tid, char* to, size_t size);

}  // namespace tachograph::blocked
