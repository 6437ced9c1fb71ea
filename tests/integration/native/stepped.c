/*
 * Counts the instructions of calls that allocate and free, by running them one by one. Prints how
 * many a pair of malloc and free takes, how many a short memcpy, and how many instructions with a
 * lock prefix, for which processors wait for each other, were among them in all. As a library it
 * has step().
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 64

static volatile size_t some = 64;

static void allocate(void) {
    for (int i = 0; i < ROUNDS; i++) {
        char* block = malloc(100);
        if (!block) abort();
        *(volatile char*)block = 1;
        free(block);
    }
}

static void copy_some(void) {
    char from[64] = {0}, to[64];
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(to, from, some);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
}

static long locked = 0;

/* The prefix comes first, or behind one that changes the size of an operand. */
static int has_lock_prefix(pid_t child) {
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, NULL, &registers);
    const long word = ptrace(PTRACE_PEEKTEXT, child, (void*)registers.rip, NULL);
    const int first = word & 0xFF, second = word >> 8 & 0xFF;
    return first == 0xF0 || (first == 0x66 && second == 0xF0);
}

static double steps_of(void (*function)(void)) {
    int status = 0;
    long steps = 0;
    function(); /* what is done once is done */
    const pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        function();
        raise(SIGSTOP);
        function();
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return -1;
    do {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0) return -1;
        waitpid(child, &status, 0);
        steps++;
        if (WIFSTOPPED(status)) locked += has_lock_prefix(child);
    } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return (double)steps / ROUNDS;
}

void step(void) {
    const double pair = steps_of(allocate), copy = steps_of(copy_some);
    printf("%.1f %.1f %ld\n", pair, copy, locked);
    fflush(stdout);
}

int main(void) {
    step();
    return 0;
}
