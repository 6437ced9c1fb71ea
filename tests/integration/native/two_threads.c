/*
 * A program that knows no Python: two threads that allocate and free, as often as the argument
 * says. Prints the CPU time of both in nanoseconds for each block.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long rounds;

static void* work(void* unused) {
    for (long i = 0; i < rounds; i++) {
        char* block = malloc(16 + (size_t)(i & 255));
        if (!block) abort();
        *(volatile char*)block = 1;
        free(block);
    }
    return unused;
}

int main(int count, char** arguments) {
    pthread_t threads[2];
    struct timespec spent;
    rounds = count > 1 ? atol(arguments[1]) : 0;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    printf("%.3f\n", ((double)spent.tv_sec * 1e9 + (double)spent.tv_nsec) / 2 / (double)rounds);
    return 0;
}
