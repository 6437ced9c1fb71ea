/*
 * Allocation where it is hard: in signal handlers, at the end of threads, between fork and exec,
 * and with blocks whose allocation was not seen. Valid as C and as C++.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
#define EXPORT extern "C" __attribute__((visibility("default")))
#else
#define EXPORT __attribute__((visibility("default")))
#endif

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Blocks of many sizes, some of them resized and copied; leaves nothing behind. */
static void churn(unsigned rounds) {
    void* blocks[64];
    memset(blocks, 0, sizeof blocks);
    for (unsigned i = 0; i < rounds; i++) {
        unsigned slot = i * 2654435761u >> 26;
        size_t size = 1 + (i * 40503u & 0x7fff);
        if (i & 1) {
            free(blocks[slot]);
            blocks[slot] = calloc(1, size);
        } else {
            blocks[slot] = realloc(blocks[slot], size);
        }
        if (!blocks[slot]) abort();
        memset(blocks[slot], (int)i, size);
        if (blocks[slot ^ 1]) {
            size_t other = malloc_usable_size(blocks[slot ^ 1]);
            memcpy(blocks[slot], blocks[slot ^ 1], size < other ? size : other);
        }
    }
    for (unsigned i = 0; i < 64; i++) free(blocks[i]);
}

/* ---- signal handlers */

static volatile sig_atomic_t handled;
static volatile uint64_t sink;

static void on_signal_malloc(int number) {
    (void)number;
    int saved = errno;
    void* block = malloc(20000);
    block = realloc(block, 200000);
    memset(block, 1, 200000);
    free(block);
    handled = handled + 1;
    errno = saved;
}

static char from[8192], to[8192];

/* Nothing here is unsafe in a handler: mappings are system calls, copies touch only their memory.
 */
static void on_signal_map(int number) {
    (void)number;
    int saved = errno;
    size_t size = 3 << 20;
    void* map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) _exit(99);
    map = mremap(map, size, 2 * size, MREMAP_MAYMOVE);
    memcpy(to, from, sizeof to);
    memmove(to + 100, to, 4000);
    munmap(map, 2 * size);
    handled = handled + 1;
    errno = saved;
}

static void every_ms(void (*handler)(int), int on) {
    struct sigaction action;
    struct itimerval timer;
    memset(&action, 0, sizeof action), memset(&timer, 0, sizeof timer);
    action.sa_handler = handler, action.sa_flags = SA_RESTART;
    if (on) timer.it_interval.tv_usec = timer.it_value.tv_usec = 1000;
    if (!on) setitimer(ITIMER_REAL, &timer, NULL);
    sigaction(SIGALRM, &action, NULL);
    if (on) setitimer(ITIMER_REAL, &timer, NULL);
}

/* For so many ms, and on a busy machine for longer: until the handler has run some hundred times.
 */
static int goes_on(int64_t began, int ms) {
    int64_t passed = now_ms() - began;
    return passed < ms || (handled < 200 && passed < 30000);
}

/* A handler that allocates, over code that does not: how often it ran. */
EXPORT int hard_malloc_in_handler(int ms) {
    handled = 0;
    every_ms(on_signal_malloc, 1);
    for (int64_t began = now_ms(); goes_on(began, ms);)
        for (int i = 0; i < 10000; i++) sink = sink * 31 + 7;
    every_ms(SIG_IGN, 0);
    return handled;
}

/* A handler that maps and copies, over code that allocates and copies: how often it ran. */
EXPORT int hard_map_in_handler(int ms) {
    handled = 0;
    every_ms(on_signal_map, 1);
    for (int64_t began = now_ms(); goes_on(began, ms);) churn(1000);
    every_ms(SIG_IGN, 0);
    return handled;
}

/* ---- the end of threads */

static pthread_key_t key;
static int destroyed;

/* Runs after everything else of the thread has gone, three times over. */
static void at_thread_end(void* value) {
    churn(300);
    uintptr_t round = (uintptr_t)value;
    void* block = malloc(100000);
    memcpy(block, from, sizeof from);
    free(block);
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
    if (round < 3) pthread_setspecific(key, (void*)(round + 1));
}

static void* thread_main(void* argument) {
    pthread_setspecific(key, (void*)(uintptr_t)1);
    churn(500);
    if (argument) pthread_exit(argument);
    return NULL;
}

/* Threads whose destructors allocate: how many destructors ran. */
EXPORT int hard_thread_end(int count) {
    pthread_key_create(&key, at_thread_end);
    for (int i = 0; i < count; i++) {
        pthread_t threads[4];
        for (int j = 0; j < 4; j++)
            if (pthread_create(&threads[j], NULL, thread_main, (void*)(uintptr_t)(j & 1))) abort();
        for (int j = 0; j < 4; j++) pthread_join(threads[j], NULL);
    }
    return destroyed;
}

/* ---- fork */

static int churning;

static void* churn_main(void* argument) {
    (void)argument;
    while (__atomic_load_n(&churning, __ATOMIC_RELAXED)) churn(2000);
    return NULL;
}

static int child(int kind) {
    churn(3000);
    void* map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map, 1 << 20);
    if (kind == 0) _exit(7);
    char* const arguments[] = {(char*)"true", NULL};
    execv("/bin/true", arguments);
    _exit(98);
}

/*
 * Forks `count` times while other threads allocate; each child allocates and then ends (kind 0) or
 * becomes another program (kind 1); kind 2 is a fork that the C library does not know of, whose
 * child leaves the heap alone. The sum of the exit statuses.
 */
EXPORT int hard_fork(int kind, int count) {
    pthread_t threads[3];
    int sum = 0, status = 0;
    churning = 1;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, churn_main, NULL)) abort();
    for (int i = 0; i < count; i++) {
        churn(500);
        pid_t pid = kind == 2 ? (pid_t)syscall(SYS_fork) : fork();
        if (pid == 0 && kind == 2) {
            memcpy(to, from, sizeof to);
            void* map = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            munmap(map, 1 << 20);
            syscall(SYS_exit_group, 3);
        }
        if (pid == 0) child(kind);
        if (waitpid(pid, &status, 0) != pid) abort();
        sum += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    }
    __atomic_store_n(&churning, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return sum;
}

/* ---- blocks and mappings from elsewhere */

EXPORT void* hard_raw_map(size_t size) {
    return (void*)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);
}

EXPORT int hard_raw_unmap(void* map, size_t size) { return (int)syscall(SYS_munmap, map, size); }
