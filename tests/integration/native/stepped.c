/*
 * Counts the instructions of calls that allocate and free, by running them one by one. Prints how
 * many a pair of malloc and free takes, and how many a short memcpy. As a library it has step().
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
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
    } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return (double)steps / ROUNDS;
}

void step(void) {
    printf("%.1f %.1f\n", steps_of(allocate), steps_of(copy_some));
    fflush(stdout);
}

int main(void) {
    step();
    return 0;
}
