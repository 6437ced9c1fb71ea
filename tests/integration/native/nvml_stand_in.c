// A stand-in for NVIDIA's libnvidia-ml.so.1, for machines without a GPU: as much of NVML's
// interface (nvml.h) as the recorder asks for, with a driver behind it that samples "the GPU" ten
// times a second in a thread of its own.
//
// How busy the GPU is, who uses it and how much memory they hold is what the file named by
// STAND_IN_GPU says at that moment: a `struct gpu` that the program maps and writes, so that a test
// knows the truth.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    INVALID = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    TOO_SMALL = 7,
    DRIVER_NOT_LOADED = 9,
    LOST = 15,
    MISMATCH = 18
};

// What can be wrong with a driver.
enum {
    SOUND = 0,
    NO_SAMPLES = 1,
    NO_BUSY = 2,
    NO_DRIVER = 3,
    HANGS = 4,
    LOSES_GPU = 5,
    JUNK = 6,
    OLD = 7,
    HANGS_AT_START = 8,
    NO_PROCESSES = 9
};

#define USERS 4
#define RING 128

struct user {
    int32_t pid;
    uint32_t busy;  // percent
    uint64_t memory;
};

struct gpu {
    uint32_t kind, devices;
    struct user users[USERS];
};

struct sample {
    unsigned long long time_us;
    unsigned busy[USERS + 1];  // of each user, then of all
};

static const struct gpu* gpu;
static struct sample ring[RING];
static unsigned long samples, questions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static unsigned all(const unsigned* busy) {
    unsigned sum = 0;
    for (int user = 0; user < USERS; ++user) sum += busy[user];
    return sum > 100 ? 100 : sum;
}

// Looks 200 times a second, and puts down the mean 10 times a second.
static void* watch(void* unused) {
    double begun = now(), before = begun, sums[USERS] = {0};
    for (;;) {
        usleep(5000);
        const double at = now();
        for (int user = 0; user < USERS; ++user)
            sums[user] += gpu->users[user].busy * (at - before);
        before = at;
        if (at - begun < 0.1) continue;
        pthread_mutex_lock(&lock);
        struct sample* sample = &ring[samples % RING];
        sample->time_us = (unsigned long long)(at * 1e6);
        for (int user = 0; user < USERS; ++user)
            sample->busy[user] = (unsigned)(sums[user] / (at - begun) + 0.5), sums[user] = 0;
        sample->busy[USERS] = all(sample->busy);
        ++samples;
        pthread_mutex_unlock(&lock);
        begun = at;
    }
    return unused;
}

static int asked(int device) {
    const unsigned long number = ++questions;
    if (gpu->kind == HANGS && number > 40) pause();
    return gpu->kind == LOSES_GPU && number > 40 && device == 0 ? LOST : SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    const char* path = getenv("STAND_IN_GPU");
    const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return DRIVER_NOT_LOADED;
    gpu = mmap(NULL, sizeof *gpu, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (gpu == MAP_FAILED || gpu->kind == NO_DRIVER) return MISMATCH;
    if (gpu->kind == HANGS_AT_START) pause();
    pthread_t thread;
    return pthread_create(&thread, NULL, watch, NULL) ? DRIVER_NOT_LOADED : SUCCESS;
}

const char* nvmlErrorString(int code) {
    return code == MISMATCH ? "Driver/library version mismatch" : "stand-in error";
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
    snprintf(text, size, "580.0.stand-in");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = gpu->devices;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    if (index >= gpu->devices) return INVALID;
    *device = (void*)(uintptr_t)(index + 1);
    return SUCCESS;
}

static int number_of(const void* device) { return (int)(uintptr_t)device - 1; }

int nvmlDeviceGetName(void* device, char* text, unsigned size) {
    snprintf(text, size, "Stand-in %d", number_of(device));
    return SUCCESS;
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
    snprintf(text, size, "GPU-00000000-0000-4000-8000-%012d", number_of(device));
    return SUCCESS;
}

// Every process uses device 0; all others are idle.
static uint64_t memory_used(const void* device) {
    uint64_t sum = 0;
    for (int user = 0; user < USERS && number_of(device) == 0; ++user)
        sum += gpu->users[user].memory;
    return sum;
}

int nvmlDeviceGetMemoryInfo(void* device, uint64_t* memory) {
    const int failed = asked(number_of(device));
    if (failed) return failed;
    memory[0] = 80ull << 30;
    memory[2] = memory_used(device) + (500ull << 20);  // with what the driver keeps for itself
    memory[1] = memory[0] - memory[2];
    return SUCCESS;
}

struct memory_v2 {
    unsigned version;
    uint64_t total, reserved, free, used;
};

int nvmlDeviceGetMemoryInfo_v2(void* device, struct memory_v2* memory) {
    if (gpu->kind == OLD) return NOT_SUPPORTED;
    const int failed = asked(number_of(device));
    if (failed) return failed;
    memory->total = 80ull << 30;
    memory->reserved = 500ull << 20;
    memory->used = memory_used(device);
    memory->free = memory->total - memory->reserved - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* power) {
    *power = 70000 + 1000u * (unsigned)number_of(device);
    return asked(number_of(device));
}

int nvmlDeviceGetTemperature(void* device, unsigned sensor, unsigned* temperature) {
    *temperature = sensor == 0 ? 41 : 0;
    return asked(number_of(device));
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
    if (gpu->kind == NO_BUSY) return NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    rates[0] = samples && number_of(device) == 0 ? ring[(samples - 1) % RING].busy[USERS] : 0;
    rates[1] = rates[0] / 2;
    pthread_mutex_unlock(&lock);
    return asked(number_of(device));
}

struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned instance, compute_instance;
};

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count,
                                            struct process* processes) {
    if (gpu->kind == NO_PROCESSES) return NO_PERMISSION;
    const unsigned room = *count;
    *count = 0;
    for (int user = 0; user < USERS && number_of(device) == 0; ++user) {
        if (!gpu->users[user].memory) continue;
        if (*count < room)
            processes[*count] =
                (struct process){(unsigned)gpu->users[user].pid, gpu->users[user].memory, 0, 0};
        ++*count;
    }
    return *count > room ? TOO_SMALL : SUCCESS;
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(void* device, unsigned* count,
                                               struct process* processes) {
    (void)device, (void)processes;
    *count = 0;
    return SUCCESS;
}

struct value {
    unsigned long long time_us;
    union {
        double real;
        unsigned number;
    } value;
};

int nvmlDeviceGetSamples(void* device, int type, unsigned long long after, int* kind,
                         unsigned* count, struct value* values) {
    if (gpu->kind == NO_SAMPLES || gpu->kind == NO_BUSY || type != 1) return NOT_SUPPORTED;
    *kind = 1;
    if (!values) {
        *count = RING;
        return SUCCESS;
    }
    unsigned found = 0;
    pthread_mutex_lock(&lock);
    for (unsigned long place = samples > RING ? samples - RING : 0;
         place < samples && found < *count; ++place) {
        const struct sample* sample = &ring[place % RING];
        if (sample->time_us <= after) continue;
        values[found].time_us = sample->time_us;
        values[found++].value.number = number_of(device) == 0 ? sample->busy[USERS] : 0;
    }
    pthread_mutex_unlock(&lock);
    *count = found;
    return found ? SUCCESS : NOT_FOUND;
}

struct process_sample {
    unsigned pid;
    unsigned long long time_us;
    unsigned multiprocessors, memory, encoder, decoder;
};

// The mean of what is later than `after`, for each process with any; NVML finds nothing where all
// were idle.
int nvmlDeviceGetProcessUtilization(void* device, struct process_sample* found, unsigned* count,
                                    unsigned long long after) {
    if (gpu->kind == NO_SAMPLES || gpu->kind == NO_BUSY) return NOT_SUPPORTED;
    if (!found) {
        *count = 100;
        return TOO_SMALL;
    }
    unsigned number = 0;
    pthread_mutex_lock(&lock);
    for (int user = 0; user < USERS && number_of(device) == 0; ++user) {
        unsigned sum = 0, seen = 0;
        unsigned long long last = 0;
        for (unsigned long place = samples > RING ? samples - RING : 0; place < samples; ++place) {
            if (ring[place % RING].time_us <= after) continue;
            sum += ring[place % RING].busy[user];
            last = ring[place % RING].time_us;
            ++seen;
        }
        if (sum)
            found[number++] = (struct process_sample){
                (unsigned)gpu->users[user].pid, last, sum / seen, sum / seen / 2, 0, 0};
    }
    pthread_mutex_unlock(&lock);
    if (gpu->kind == JUNK) {
        const int32_t pid = gpu->users[0].pid;
        found[number++] = (struct process_sample){0, 0, 3, 4, 0, 0};
        found[number++] = (struct process_sample){(unsigned)pid, 5, 50, 0, 0, 0};
        found[number++] = (struct process_sample){(unsigned)pid, ~0ull, 4294967295u, 1, 0, 0};
        found[number++] = (struct process_sample){4294967295u, 17, 101, 1, 0, 0};
    }
    *count = number;
    return number ? SUCCESS : NOT_FOUND;
}
