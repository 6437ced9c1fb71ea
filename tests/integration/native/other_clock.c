// Replaces the C library's clocks, as libfaketime does, and is twelve years ahead.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* time) {
    const long result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME))
        time->tv_sec += 12L * 365 * 24 * 3600;
    return (int)result;
}
