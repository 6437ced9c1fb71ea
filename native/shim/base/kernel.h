// Raw system calls and clocks: no errno, no cancellation points, no PLT, so they are safe in signal
// handlers and in the helper thread.
#pragma once

#include "arch/system_call.h"
#include "tachograph/vdso_clock.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace tachograph::kernel {

// Returns the kernel's result: negative errno on failure.
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
    return arch::system_call(number, a, b, c, d, e, f);
}

// Whether a result is a negative errno; an address may be negative as well.
inline bool failed(long result) { return result < 0 && result >= -4095; }

template <typename T>
long address(T* pointer) {
    return reinterpret_cast<long>(pointer);
}

inline pid_t gettid() { return static_cast<pid_t>(call(SYS_gettid)); }
inline pid_t getpid() { return static_cast<pid_t>(call(SYS_getpid)); }

inline int64_t clock_ns(clockid_t clock) {
    timespec t{};
    if (call(SYS_clock_gettime, clock, address(&t)) != 0) return -1;
    return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

inline int64_t monotonic_ns() { return vdso_clock::read_ns(CLOCK_MONOTONIC); }

// CPU clock of a thread of this process (see clock_getcpuclockid in the kernel's posix-timers.h).
inline clockid_t thread_clock(pid_t tid) { return static_cast<clockid_t>((~tid << 3) | 6); }

// A thread and its CPU clock: as long as that is the same, the thread has not run.
struct ThreadCpu {
    pid_t tid;
    int64_t cpu_ns;
};

inline ThreadCpu read_cpu(pid_t tid) { return {tid, clock_ns(thread_clock(tid))}; }

// As tg_walker::walk_other asks for it; `context` is a ThreadCpu.
inline int has_not_run(void* context) {
    const auto* seen = static_cast<const ThreadCpu*>(context);
    return read_cpu(seen->tid).cpu_ns == seen->cpu_ns;
}

inline int64_t own_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

// Of tables most pages are never touched. Where huge pages are always given, one touch would take
// 512 of them, in each forked worker anew. Kernels without huge pages refuse, and all is well.
inline void keep_pages_small(long at, size_t bytes) {
    call(SYS_madvise, at, static_cast<long>(bytes), MADV_NOHUGEPAGE);
}

// Whether the program has asked for every page of what is mapped from now on (mlockall).
inline constinit std::atomic<bool> g_fills_mappings{false};

// A new mapping, where none is that the program takes for its own (base/unforked_ranges.cpp). The
// kernel's result.
long map_new(size_t size, int protection, int flags, long fd);

// Zeroed memory, at an address that is ours already or (0) a new one; its pages come when they are
// touched, and where the program locks its memory, they stay from then on. Negative: an errno.
inline long map_zeros(long at, size_t bytes) {
    const auto size = static_cast<long>(bytes);
    const bool fills = g_fills_mappings.load(std::memory_order_relaxed);
    const int protection = fills ? PROT_NONE : PROT_READ | PROT_WRITE;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    const long got = at != 0 ? call(SYS_mmap, at, size, protection, kFlags | MAP_FIXED, -1, 0)
                             : map_new(bytes, protection, kFlags, -1);
    if (failed(got)) return got;
    if (fills) {
        constexpr long kWhenTouched = 1;  // MLOCK_ONFAULT
        call(SYS_mlock2, got, size, kWhenTouched);
        call(SYS_mprotect, got, size, PROT_READ | PROT_WRITE);
    }
    keep_pages_small(got, bytes);
    return got;
}

// Zeroed memory of our own, given back never; pages cost nothing before they are touched.
template <typename T>
bool map(T** to, size_t bytes) {
    const long got = map_zeros(0, bytes);
    if (failed(got)) return false;
    *to = reinterpret_cast<T*>(got);
    return true;
}

// Memory from `map` is all zeros again, takes no room, and in a forked child nothing of the
// parent's is copied. False if that is not allowed: then it is as it was.
template <typename T>
bool clear(T* at, size_t bytes) {
    if (!at || call(SYS_madvise, address(at), static_cast<long>(bytes), MADV_DONTNEED) == 0)
        return true;
    // It is locked.
    const long got = map_zeros(address(at), bytes);
    return !failed(got);
}

// Tables of one process. A fork copies nothing of them, neither at once nor when the parent next
// stores into them, and the child finds zeros. Linux can do that since 4.14; a sandbox may forbid
// it, and then the child clears them.
inline constinit std::atomic<bool> g_forks_wipe{true};
// True while a forked child forgets its parent.
inline constinit std::atomic<bool> g_is_wiped{false};

inline void wipe_at_fork(long at, size_t bytes) {
    if (call(SYS_madvise, at, static_cast<long>(bytes), MADV_WIPEONFORK) != 0)
        g_forks_wipe.store(false, std::memory_order_relaxed);
}

template <typename T>
bool map_for_one_process(T** to, size_t bytes) {
    if (!map(to, bytes)) return false;
    wipe_at_fork(address(*to), bytes);
    return true;
}

// As `clear`, of memory from `map_for_one_process`.
template <typename T>
bool clear_for_one_process(T* at, size_t bytes) {
    if (!at || g_is_wiped.load(std::memory_order_relaxed)) return true;
    if (!clear(at, bytes)) return false;
    wipe_at_fork(address(at), bytes);  // it may have been mapped anew
    return true;
}

inline timespec to_timespec(int64_t ns) {
    return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace tachograph::kernel
