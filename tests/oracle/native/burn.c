/*
 * What the oracle's programs need from outside Python: work of a known length, with and without the
 * GIL, on threads that Python knows and on one that it does not, and calls that block. Valid as C
 * and as C++, because a machine that builds this project is only promised a C++ compiler.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
#define EXPORT extern "C" __attribute__((visibility("default")))
#else
#define EXPORT __attribute__((visibility("default")))
#endif

static volatile uint64_t sink;

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* About 0.1 ms of arithmetic, so that the clock, which is a system call, costs next to nothing. */
static void spin(void) {
    uint64_t x = sink | 1;
    for (int i = 0; i < 100000; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
}

/* Uses `ns` of this thread's CPU time and returns what it used. Whether the GIL is held is the
 * caller's choice. */
EXPORT int64_t oracle_burn(int64_t ns) {
    int64_t begin = now(CLOCK_THREAD_CPUTIME_ID), spent = 0;
    while (spent < ns) {
        spin();
        spent = now(CLOCK_THREAD_CPUTIME_ID) - begin;
    }
    return spent;
}

struct native_thread {
    pthread_t thread;
    int64_t ns;
    int64_t cpu_ns;
};

static void* native_main(void* argument) {
    struct native_thread* self = (struct native_thread*)argument;
    oracle_burn(self->ns);
    self->cpu_ns = now(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* A thread that never meets Python. NULL if it could not be made. */
EXPORT void* oracle_native_start(int64_t ns) {
    struct native_thread* self = (struct native_thread*)calloc(1, sizeof *self);
    if (!self) return NULL;
    self->ns = ns;
    if (pthread_create(&self->thread, NULL, native_main, self)) {
        free(self);
        return NULL;
    }
    pthread_setname_np(self->thread, "oracle-native");
    return self;
}

/* Waits for it and returns the CPU time of its whole life. */
EXPORT int64_t oracle_native_join(void* handle) {
    struct native_thread* self = (struct native_thread*)handle;
    pthread_join(self->thread, NULL);
    int64_t cpu = self->cpu_ns;
    free(self);
    return cpu;
}

/* Reads one byte and returns how long that blocked, or -errno. */
EXPORT int64_t oracle_read(int fd) {
    char byte;
    int64_t begin = now(CLOCK_MONOTONIC);
    if (read(fd, &byte, 1) < 0) return -(int64_t)errno;
    return now(CLOCK_MONOTONIC) - begin;
}

/*
 * Blocks `ms` milliseconds in one call and returns 0, or the errno that it ended with.
 * `fd` never becomes readable. Kinds: 0 poll, 1 select, 2 epoll_wait, 3 nanosleep, 4 read (of a
 * byte that does come).
 */
EXPORT int oracle_block(int kind, int fd, int ms) {
    int result = -1;
    errno = 0;
    if (kind == 0) {
        struct pollfd p;
        p.fd = fd, p.events = POLLIN, p.revents = 0;
        result = poll(&p, 1, ms);
    } else if (kind == 1) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(fd, &set);
        struct timeval t;
        t.tv_sec = ms / 1000, t.tv_usec = (ms % 1000) * 1000;
        result = select(fd + 1, &set, NULL, NULL, &t);
    } else if (kind == 2) {
        int e = epoll_create1(0);
        struct epoll_event event;
        memset(&event, 0, sizeof event);
        event.events = EPOLLIN;
        epoll_ctl(e, EPOLL_CTL_ADD, fd, &event);
        errno = 0;
        result = epoll_wait(e, &event, 1, ms);
        int saved = errno;
        close(e);
        errno = saved;
    } else if (kind == 3) {
        struct timespec t;
        t.tv_sec = ms / 1000, t.tv_nsec = (long)(ms % 1000) * 1000000;
        result = nanosleep(&t, NULL);
    } else {
        char byte;
        result = (int)read(fd, &byte, 1);
    }
    return result < 0 ? errno : 0;
}

/* Runs `seconds` of faults on an alternate signal stack: returns how many of `count` were handled
 * on it. */
static volatile sig_atomic_t on_stack;
static char* alternate;
static const size_t alternate_size = 64 * 1024;

static void on_alternate(int number) {
    char here;
    (void)number;
    if (&here >= alternate && &here < alternate + alternate_size) on_stack = on_stack + 1;
}

EXPORT int oracle_sigaltstack(int number, int count, int64_t burn_ns) {
    stack_t stack, old_stack;
    struct sigaction action, old_action;
    alternate = (char*)malloc(alternate_size);
    if (!alternate) return -1;
    memset(&stack, 0, sizeof stack);
    stack.ss_sp = alternate, stack.ss_size = alternate_size;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alternate, action.sa_flags = SA_ONSTACK;
    on_stack = 0;
    if (sigaltstack(&stack, &old_stack) || sigaction(number, &action, &old_action)) return -1;
    for (int i = 0; i < count; i++) {
        raise(number);
        oracle_burn(burn_ns / count);
    }
    sigaction(number, &old_action, NULL);
    sigaltstack(&old_stack, NULL);
    free(alternate);
    return (int)on_stack;
}
