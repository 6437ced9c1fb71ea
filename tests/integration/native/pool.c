// A pool of one native thread, which computes while its submitter waits or computes as well.
#include <pthread.h>
#include <stdint.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int64_t wanted_ns = 0;

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void burn(int64_t ns) {
    const int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        for (volatile int i = 0; i < 10000; ++i) {
        }
}

static void* worker(void* unused) {
    for (;;) {
        pthread_mutex_lock(&lock);
        while (wanted_ns == 0) pthread_cond_wait(&changed, &lock);
        const int64_t ns = wanted_ns;
        pthread_mutex_unlock(&lock);
        burn(ns);
        pthread_mutex_lock(&lock);
        wanted_ns = 0;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

void start_pool(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
}

// The worker's CPU time, and the caller's own meanwhile.
void ask(int64_t ns, int64_t own_ns) {
    pthread_mutex_lock(&lock);
    wanted_ns = ns;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    burn(own_ns);
    pthread_mutex_lock(&lock);
    while (wanted_ns != 0) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
