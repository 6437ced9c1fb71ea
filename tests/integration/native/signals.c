/* What programs do with signals and their stacks. Each function returns 0, or where it failed. For
 * ctypes. */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static void burn(double seconds) {
    struct timespec now, begin;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    do {
        for (int i = 0; i < 1000; i++) sink += (uint64_t)i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 <
             seconds);
}

static void on_signal(int number) {
    (void)number;
    burn(0.3);
}

/*
 * A small alternate stack while the thread is busy. `handler`: a handler runs on it; else it is
 * only there.
 */
__attribute__((visibility("default"))) int use_small_stack(long size, int handler) {
    const long page = 4096;
    const long whole = (size + page - 1) / page * page;
    /* Below the stack no memory: one byte too many is a fault. */
    char* memory = mmap(NULL, (size_t)(whole + page), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack, before;
    struct sigaction action, seen;
    if (memory == MAP_FAILED || mprotect(memory, (size_t)page, PROT_NONE) != 0) return 1;
    memset(&stack, 0, sizeof stack);
    stack.ss_sp = memory + page;
    stack.ss_size = (size_t)size;
    if (sigaltstack(&stack, &before) != 0) return 2;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    if (sigaction(SIGUSR2, &action, NULL) != 0 || sigaction(SIGUSR2, NULL, &seen) != 0) return 3;
    for (int signal = 1; signal < 64; signal++)
        if (sigismember(&seen.sa_mask, signal)) return 4; /* what was given is what is told */
    for (int i = 0; i < 3; i++) {
        if (handler) raise(SIGUSR2);
        burn(0.1);
    }
    return sigaltstack(&before, NULL) == 0 ? 0 : 5;
}

static int blocks(int signal) {
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    return sigismember(&mask, signal);
}

/* A vfork child shares all memory and has signals of its own: it takes every signal for itself, and
 * blocks them all. */
__attribute__((visibility("default"))) int vfork_child_changes_signals(void) {
    struct sigaction action, seen;
    sigset_t all;
    int status = 0;
    pid_t child;
    sigfillset(&all);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    child = vfork();
    if (child == 0) {
        for (int signal = 1; signal <= SIGRTMAX; signal++) sigaction(signal, &action, NULL);
        sigprocmask(SIG_SETMASK, &all, NULL);
        _exit(blocks(SIGSTKFLT) && blocks(SIGUSR1) ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    if (status != 0) return 2;
    if (blocks(SIGSTKFLT) || blocks(SIGUSR1)) return 3;
    for (int signal = 1; signal <= SIGRTMAX; signal++)
        if (sigaction(signal, NULL, &seen) == 0 && seen.sa_handler == on_signal) return 4;
    burn(0.3);
    return 0;
}
