// A pool of two native threads, one of which hands a part of its work to the other: as rayon's
// steal it. What is asked for lies on the stack of who asks, the part on that of the first worker.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

struct work {
    void (*burn)(int64_t ns);
    int64_t ns;
    int done;
};

struct queue {
    struct work* next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct queue asked, handed_on;

static void burn(int64_t ns) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const int64_t end = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + ns;
    do {
        for (volatile int i = 0; i < 10000; ++i) {
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec < end);
}

// By which the native call path says who has asked. They return, so that they are on it.
__attribute__((noinline)) void burn_for_first(int64_t ns) {
    burn(ns);
    __asm__ volatile("");
}

__attribute__((noinline)) void burn_for_second(int64_t ns) {
    burn(ns);
    __asm__ volatile("" ::"r"(1));
}

__attribute__((noinline)) void burn_for_none(int64_t ns) {
    burn(ns);
    __asm__ volatile("" ::"r"(2));
}

static void put(struct queue* queue, struct work* work) {
    pthread_mutex_lock(&lock);
    while (queue->next) pthread_cond_wait(&changed, &lock);
    queue->next = work;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static struct work* take(struct queue* queue) {
    pthread_mutex_lock(&lock);
    while (!queue->next) pthread_cond_wait(&changed, &lock);
    struct work* work = queue->next;
    queue->next = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return work;
}

static void finish(struct work* work) {
    pthread_mutex_lock(&lock);
    work->done = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void await(struct work* work) {
    pthread_mutex_lock(&lock);
    while (!work->done) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void do_a_part(struct work* work) {
    work->burn(work->ns);
    finish(work);
}

__attribute__((noinline)) static void do_work(struct work* work) {
    struct work part = {work->burn, work->ns, 0};
    put(&handed_on, &part);
    work->burn(work->ns);
    await(&part);
    finish(work);
}

static void* first_worker(void* unused) {
    for (;;) do_work(take(&asked));
    return unused;
}

static void* second_worker(void* unused) {
    for (;;) do_a_part(take(&handed_on));
    return unused;
}

void start_pool(void) {
    pthread_t thread;
    pthread_create(&thread, 0, first_worker, 0);
    pthread_create(&thread, 0, second_worker, 0);
}

// Each worker's CPU time.
void ask(int for_first, int64_t ns) {
    struct work work = {for_first ? burn_for_first : burn_for_second, ns, 0};
    put(&asked, &work);
    await(&work);
}

// The same, but what is asked for lies in the heap.
void ask_from_heap(int64_t ns) {
    struct work* work = malloc(sizeof *work);
    *work = (struct work){burn_for_none, ns, 0};
    put(&asked, work);
    await(work);
    free(work);
}
