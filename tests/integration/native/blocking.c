/*
 * Calls that end with EINTR at any signal, made over and over by a program that takes EINTR for a
 * failure. Between two of them the thread uses the CPU for some tenths of a millisecond, so that a
 * timer that goes by CPU time may expire at any moment, also just before the call. Valid as C and
 * as C++.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
#define EXPORT extern "C" __attribute__((visibility("default")))
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { POLL, SELECT, EPOLL, NANOSLEEP, READ, ACCEPT, CONNECT, KINDS };

static int64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void burn(int64_t ns) {
    volatile uint64_t sink = 1;
    for (int64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns; now_ns(CLOCK_THREAD_CPUTIME_ID) < end;)
        for (int i = 0; i < 2000; i++) sink = sink * 31 + 7;
}

static void limit(int fd, int option) {
    struct timeval t;
    t.tv_sec = 0, t.tv_usec = 2000;
    setsockopt(fd, SOL_SOCKET, option, &t, sizeof t);
}

/* A listening socket that is never accepted from, of a name of its own (abstract: no file). */
static int listener(struct sockaddr_un* address, socklen_t* length, int backlog) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    *length = sizeof address->sun_family;
    bind(fd, (struct sockaddr*)address, *length);
    listen(fd, backlog);
    *length = sizeof *address;
    getsockname(fd, (struct sockaddr*)address, length);
    return fd;
}

struct places {
    int pipes[2], pair[2], epoll, waiting, full;
    struct sockaddr_un address;
    socklen_t length;
};

static int once(int kind, struct places* p) {
    struct timespec t;
    memset(&t, 0, sizeof t);
    t.tv_nsec = 2000000;
    if (kind == POLL) {
        struct pollfd fd;
        fd.fd = p->pipes[0], fd.events = POLLIN, fd.revents = 0;
        return poll(&fd, 1, 2);
    }
    if (kind == SELECT) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(p->pipes[0], &set);
        struct timeval v;
        v.tv_sec = 0, v.tv_usec = 2000;
        return select(p->pipes[0] + 1, &set, NULL, NULL, &v);
    }
    if (kind == EPOLL) {
        struct epoll_event event;
        return epoll_wait(p->epoll, &event, 1, 2);
    }
    if (kind == NANOSLEEP) return nanosleep(&t, NULL);
    char byte;
    if (kind == READ) return (int)read(p->pair[0], &byte, 1);
    if (kind == ACCEPT) return accept(p->waiting, NULL, NULL);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    limit(fd, SO_SNDTIMEO); /* the backlog is full: connect waits */
    int result = connect(fd, (struct sockaddr*)&p->address, p->length);
    int saved = errno;
    close(fd);
    errno = saved;
    return result;
}

/*
 * Makes calls of one kind for `ms` milliseconds. The number of calls, all of which ended as their
 * timeout says; -1 after one that was interrupted, -2 after any other end.
 */
EXPORT int blocking_calls(int kind, int ms) {
    struct places p;
    struct sockaddr_un unused;
    socklen_t unused_length;
    if (pipe(p.pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, p.pair)) return -2;
    limit(p.pair[0], SO_RCVTIMEO);
    p.epoll = epoll_create1(0);
    p.waiting = listener(&unused, &unused_length, 1);
    limit(p.waiting, SO_RCVTIMEO);
    p.full = listener(&p.address, &p.length, 0);
    int first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(first, (struct sockaddr*)&p.address, p.length)) return -2;
    int count = 0, failed = 0;
    for (int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)ms * 1000000;
         !failed && now_ns(CLOCK_MONOTONIC) < end; count++) {
        burn(100000 + count * 7919 % 700 * 1000);
        errno = 0;
        int result = once(kind, &p);
        int timed_out = kind < READ ? result == 0 : result < 0 && errno == EAGAIN;
        if (timed_out) continue;
        fprintf(stderr, "kind %d ended with %d: %s\n", kind, result, strerror(errno));
        failed = errno == EINTR ? -1 : -2;
    }
    int fds[] = {p.pipes[0], p.pipes[1], p.pair[0], p.pair[1], p.epoll, p.waiting, p.full, first};
    for (unsigned i = 0; i < sizeof fds / sizeof fds[0]; i++) close(fds[i]);
    return failed ? failed : count;
}
