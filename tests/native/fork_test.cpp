// A forked child that goes on is recorded as a process of its own.
#include "base/kernel.h"
#include "check.h"
#include "memory/footprint.h"
#include "memory/heap.h"
#include "memory/mappings.h"
#include "process/helper.h"
#include "process/lifecycle.h"
#include "set_settings.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/contexts.h"
#include "stacks/recorder.h"
#include "stacks/threads.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace tachograph;

namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr size_t kBlock = 40 << 20;

void found(tg_walk* out) {
    uint32_t node = kNone;
    for (uint32_t code = 0; code < 20; ++code) node = contexts::intern_stack(node, code, 2);
    out->stack = node;
    out->state = TG_STACK_WHOLE;
    out->gil = 1;
}

const tg_walker kWalker{
    .walk_self = found,
    .walk_other = [](pid_t, void**, int (*)(void*), void*, tg_walk* out) { found(out); },
    .is_gil = [](const void*, const void*) { return 0; },
    .position = [](tg_position*) { return 0; },
    .thread_name = [](char*, size_t) -> size_t { return 0; },
    .after_fork = lifecycle::restart_helper,
    .in_forked_child = [] { return 0; },
    .evaluation_loop = reinterpret_cast<const void*>(&found),
    .calls_turn = nullptr,
    .calls_sampled = nullptr,
    .calls_flush = nullptr,
    .progress = nullptr,
    .is_header = nullptr,
    .census = nullptr,
    .counts_threads = 0,
};

void arm(int memory, int children = 1) {
    char error[200] = {};
    tests::set_settings(tests::folder,
                        "interval_ns=1000000,segment=65536,waits=1,memory=%d,threshold=1048576"
                        ",children=%d,native_depth=64",
                        memory, children);
    if (lifecycle::arm(settings::options(), kWalker, error, sizeof error) != 0) puts(error);
    CHECK(recording());
    if (memory) heap::begin(0, true);
}

void spend(int64_t cpu_ns) {
    const int64_t end = kernel::own_cpu_ns() + cpu_ns;
    while (kernel::own_cpu_ns() < end) {
        // The thread sanitizer delivers signals in calls that block only.
        const int64_t part = kernel::own_cpu_ns() + kMillisecond / 2;
        while (TG_THREAD_SANITIZER && kernel::own_cpu_ns() < part) {
        }
        if (TG_THREAD_SANITIZER) usleep(1);
    }
}

uint64_t samples() { return __atomic_load_n(&spool::control()->samples, __ATOMIC_RELAXED); }

// Samples come when the kernel's tick does: waited for, however busy the machine is. The thread
// sanitizer delivers no signals in a forked child.
void spend_until_sampled() {
    if (TG_THREAD_SANITIZER) return spend(5 * kMillisecond);
    const uint64_t before = samples();
    for (int tries = 0; samples() < before + 3; ++tries) {
        CHECK(tries < 5000);
        spend(kMillisecond);
    }
}

uint64_t loss(Loss which) {
    return __atomic_load_n(&spool::control()->losses[static_cast<uint32_t>(which)],
                           __ATOMIC_RELAXED);
}

const void* address(uint64_t number) {
    return reinterpret_cast<const void*>(0x10'0000'0000 + kBlock * number);
}

void take(uint64_t number) { heap::took(heap::t_local, address(number), kBlock, kBlock, nullptr); }

void give(uint64_t number) {
    heap::gives(address(number));
    heap::gave(heap::t_local, kBlock);
}

// The state of a thread as the kernel tells it, such as 'S' for one that sleeps.
char state_of(const char* thread) {
    char path[300];
    char text[600] = {};
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread);
    FILE* file = fopen(path, "r");
    if (!file) return '\0';
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char* name_end = length > 0 ? strrchr(text, ')') : nullptr;
    return name_end ? name_end[2] : '\0';
}

bool others_sleep() {
    DIR* folder = opendir("/proc/self/task");
    CHECK(folder);
    bool all = true;
    while (const dirent* entry = readdir(folder)) {
        const int thread = atoi(entry->d_name);
        if (thread > 0 && thread != gettid()) all &= state_of(entry->d_name) == 'S';
    }
    closedir(folder);
    return all;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

// GCC's address sanitizer leaves its own locks in a child as they were: a thread that is just
// beginning holds that of its allocator, and a thread of the child would wait for it for ever.
void let_threads_begin() {
    for (int tries = 0; kAddressSanitizer && tries < 100 && !others_sleep(); ++tries) usleep(1000);
}

// Runs `work` in a child; true if it got to its end.
template <typename F>
bool in_child(F work) {
    let_threads_begin();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        work();
        fflush(nullptr);
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child);
    return status == 0;
}

void skip_if_threads_cannot_be() {
    if (!TG_THREAD_SANITIZER) return;
    puts("the thread sanitizer knows no threads in a forked child");
    exit(77);
}

int named_files(const char* end) {
    DIR* folder = opendir(tests::folder);
    CHECK(folder);
    int count = 0;
    while (const dirent* entry = readdir(folder)) {
        const size_t length = strlen(entry->d_name);
        count += length > strlen(end) && strcmp(entry->d_name + length - strlen(end), end) == 0;
    }
    closedir(folder);
    return count;
}

}  // namespace

// Children, and children of theirs, while another thread of the parent is in the middle of all.
TEST(fork_children_are_recorded) {
    skip_if_threads_cannot_be();
    arm(0);
    std::atomic<bool> done{false};
    std::thread busy([&] {
        lifecycle::begin_thread("busy", 4);
        while (!done.load()) spend(kMillisecond);
    });
    spend_until_sampled();
    for (int i = 0; i < 6; ++i) {
        const Control* parents = spool::control();
        CHECK(in_child([&] {
            CHECK(!recording() && lifecycle::arm_again("child", 5) == 0);
            CHECK(recording() && spool::control() != parents);
            CHECK(spool::control()->pid == getpid());
            CHECK(threads::high_water() == 1 && threads::own() == threads::at(0));
            CHECK(lifecycle::arm_again("child", 5) == -1);  // it is recorded already
            spend_until_sampled();
            std::thread([] {
                lifecycle::begin_thread("other", 5);
                spend_until_sampled();
            }).join();
            CHECK(in_child([] {
                CHECK(lifecycle::arm_again("grandchild", 10) == 0);
                spend_until_sampled();
                lifecycle::finish();
                CHECK(!recording());
            }));
            spend_until_sampled();
            lifecycle::finish();
        }));
        CHECK(recording() && spool::control() == parents);
    }
    spend_until_sampled();
    done.store(true);
    busy.join();
    CHECK(loss(Loss::forks_unrecorded) == 0 && named_files(".ctl") == 1 + 2 * 6);
}

// One that is not armed anew writes nothing anywhere, whatever it does.
TEST(fork_child_that_is_left_alone) {
    arm(1);
    take(1);
    const uint64_t before = samples();
    CHECK(in_child([] {
        give(1);
        for (uint64_t number = 2; number < 20; ++number) take(number);
        spend(20 * kMillisecond);
        std::thread([] { spend(kMillisecond); }).join();
        CHECK(!recording());
        lifecycle::finish();
    }));
    CHECK(samples() >= before && named_files(".ctl") == 1);
}

TEST(fork_children_are_not_wanted) {
    arm(0, 0);
    CHECK(in_child([] { CHECK(lifecycle::arm_again("child", 5) == -1 && !recording()); }));
    CHECK(loss(Loss::forks_unrecorded) == 1 && named_files(".ctl") == 1);
}

// It says so where its parent is, and goes on.
TEST(fork_child_finds_no_room) {
    arm(0);
    CHECK(in_child([] {
        char moved[600];
        snprintf(moved, sizeof moved, "%s.away", tests::folder);
        CHECK(rename(tests::folder, moved) == 0);
        CHECK(lifecycle::arm_again("child", 5) == -1 && !recording());
        CHECK(rename(moved, tests::folder) == 0);
        spend(5 * kMillisecond);
        lifecycle::finish();
    }));
    CHECK(loss(Loss::forks_unrecorded) == 1 && named_files(".ctl") == 1);
}

// What the parent holds the child holds, too: its counters begin there, and what it frees of it is
// not the death of a block that it has allocated.
TEST(fork_counters_go_on) {
    skip_if_threads_cannot_be();
    arm(1);
    std::atomic<bool> done{false};
    std::thread busy([&] {
        lifecycle::begin_thread("busy", 4);
        for (uint64_t number = 100; !done.load(); ++number) {
            take(number);
            give(number);
        }
    });
    take(1);
    take(2);
    for (int i = 0; i < 8; ++i)
        CHECK(in_child([] {
            CHECK(lifecycle::arm_again("child", 5) == 0);
            give(1);
            take(3);
            take(4);
            give(3);
            lifecycle::finish();
        }));
    done.store(true);
    busy.join();
    printf("%zu\n", kBlock);
}

// The holder of the table of mappings in the parent is not there in the child.
TEST(fork_in_the_middle_of_a_mapping) {
    arm(1);
    std::atomic<bool> done{false};
    std::thread busy([&] {
        while (!done.load()) {
            mappings::add(0x20'0000'0000, 1 << 20);
            mappings::remove(0x20'0000'0000, 1 << 20);
        }
    });
    for (int i = 0; i < 30; ++i)
        CHECK(in_child([] {
            CHECK(mappings::add(0x30'0000'0000, 4096).mapped == 4096);
            CHECK(mappings::holds(0x30'0000'0000, 4096));
        }));
    done.store(true);
    busy.join();
    CHECK(loss(Loss::mappings_untracked) == 0);
}
