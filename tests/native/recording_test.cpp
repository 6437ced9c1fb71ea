// All of the shim together, with a walker that knows no Python.
#include "base/kernel.h"
#include "check.h"
#include "cpu/timers.h"
#include "process/helper.h"
#include "process/lifecycle.h"
#include "process/survey.h"
#include "set_settings.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/contexts.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

using namespace tachograph;

extern "C" const tg_api* tachograph_api();

namespace {

constexpr int64_t kMillisecond = 1'000'000;

void found(tg_walk* out, uint32_t leaf) {
    uint32_t node = kNone;
    for (uint32_t code = 0; code < 20; ++code) node = contexts::intern_stack(node, code, 2);
    out->stack = contexts::intern_stack(node, leaf, 4);
    out->state = TG_STACK_WHOLE;
    out->gil = 1;
}

std::atomic<uint32_t> g_turn{0};
std::atomic<int> g_threads_after_fork{0};

int threads_of_process() {
    DIR* tasks = opendir("/proc/self/task");
    CHECK(tasks);
    int count = 0;
    while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

const tg_walker kWalker{
    .walk_self = [](tg_walk* out) { found(out, 100 + g_turn.fetch_add(1) % 50); },
    .walk_other = [](pid_t, void**, int (*)(void*), void*, tg_walk* out) { found(out, 200); },
    .is_gil = [](const void*, const void*) { return 0; },
    .position = [](tg_position*) { return 0; },
    .thread_name = [](char*, size_t) -> size_t { return 0; },
    .after_fork =
        [] {
            g_threads_after_fork.store(threads_of_process());
            lifecycle::restart_helper();
        },
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

int arm(const char* folder, char* error, size_t size, bool waits = true,
        const tg_walker& walker = kWalker) {
    tests::set_settings(folder,
                        "interval_ns=1000000,segment=65536,waits=%d,children=0,native_depth=64",
                        waits ? 1 : 0);
    return lifecycle::arm(settings::options(), walker, error, size);
}

void arm() {
    char error[200] = {};
    if (arm(tests::folder, error, sizeof error) != 0) puts(error);
    CHECK(recording());
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

// Samples come when the kernel lets them: waited for, however busy the machine is.
void spend_until_sampled() {
    for (int tries = 0; __atomic_load_n(&spool::control()->samples, __ATOMIC_RELAXED) == 0;
         ++tries) {
        CHECK(tries < 5000);
        spend(kMillisecond);
    }
}

// How many threads there were, at least and at most: the thread sanitizer's runtime has one of its
// own, which is found where the test takes long enough.
void print_threads(int count) { printf("%d %d\n", count, count + TG_THREAD_SANITIZER); }

void wait_for_helper() {
    for (int tries = 0; helper::tid() == 0; ++tries, usleep(1000)) CHECK(tries < 5000);
}

uint64_t loss(Loss which) {
    return __atomic_load_n(&spool::control()->losses[static_cast<uint32_t>(which)],
                           __ATOMIC_RELAXED);
}

}  // namespace

TEST(recording_threads_come_and_go) {
    arm();
    for (int batch = 0; batch < 60; ++batch) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 6; ++i)
            threads.emplace_back([i] {
                lifecycle::begin_thread("short", 5);
                spend(i * kMillisecond / 2);
                if (i == 0) usleep(1000);
            });
        for (std::thread& thread : threads) thread.join();
    }
    CHECK(loss(Loss::threads_missed) == 0 && loss(Loss::records_dropped) == 0);
    CHECK(loss(Loss::timers_refused) == 0);
    print_threads(1 + 60 * 6);
}

// What sources say of themselves is what the control file has of all of them.
TEST(recording_sources_tell_their_cost) {
    arm();
    spend_until_sampled();
    const int64_t* helper_ns = &spool::control()->helper_cpu_ns;  // is written after each tick
    for (int tries = 0; __atomic_load_n(helper_ns, __ATOMIC_RELAXED) == 0; ++tries, usleep(1000))
        CHECK(tries < 20000);
    lifecycle::finish();
    const Cost cpu = sources::cost("cpu"), waits = sources::cost("waits"), all = sources::cost();
    CHECK(cpu.handlers_ns > 0);
    CHECK(cpu.handlers_ns == spool::control()->handler_cpu_ns);
    CHECK(all.ticks_ns >= cpu.ticks_ns + waits.ticks_ns);
    CHECK(waits.handlers_ns == 0 && all.handlers_ns == cpu.handlers_ns && waits.ticks_ns > 0);
    CHECK(all.ticks_ns < spool::control()->helper_cpu_ns);
    CHECK(sources::cost("no such source").ticks_ns == 0);
}

// Threads that were there before arming are found at once; no hook sees their end.
TEST(recording_threads_from_before) {
    constexpr int kThreads = 5;
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            while (!done.load()) spend(kMillisecond);
        });
    arm();
    spend_until_sampled();
    usleep(100'000);
    done.store(true);
    for (std::thread& thread : threads) thread.join();
    usleep(100'000);
    print_threads(1 + kThreads);
}

// The same where waits are not sampled: the look at all threads finds them gone.
TEST(recording_threads_gone_without_waits) {
    char error[200] = {};
    std::atomic<bool> done{false};
    std::thread busy([&] {
        while (!done.load()) spend(kMillisecond);
    });
    CHECK(arm(tests::folder, error, sizeof error, false) == 0);
    helper::stop();
    spend_until_sampled();
    survey::look(false, helper::tid());
    done.store(true);
    busy.join();
    survey::look(false, helper::tid());
    CHECK(loss(Loss::threads_missed) == 0);
    print_threads(2);
}

TEST(recording_pauses_and_goes_on) {
    arm();
    std::atomic<bool> done{false};
    std::thread busy([&] {
        lifecycle::begin_thread("busy", 4);
        while (!done.load()) spend(kMillisecond);
    });
    for (int i = 0; i < 40; ++i) {
        lifecycle::pause(i % 2 == 0);
        CHECK(spool::control()->paused == (i % 2 == 0 ? 1u : 0u));
        spend(kMillisecond * 2);
    }
    lifecycle::pause(false);  // no second record of what is so already
    done.store(true);
    busy.join();
    printf("20\n");
}

// No thread of ours is there when the process forks, or it is held; the child is left alone, the
// helper comes back.
void fork_often(bool counts_threads) {
    tg_walker walker = kWalker;
    walker.counts_threads = counts_threads;
    char error[200] = {};
    CHECK(arm(tests::folder, error, sizeof error, true, walker) == 0);
    std::atomic<bool> done{false};
    std::thread busy([&] {
        lifecycle::begin_thread("busy", 4);
        while (!done.load()) spend(kMillisecond);
    });
    // The thread sanitizer's runtime has one of its own.
    const int most = 2 + TG_THREAD_SANITIZER + !counts_threads;
    int held = 0;
    for (int i = 0; i < 40; ++i) {
        wait_for_helper();
        const int helper = helper::tid();
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            // Nothing of ours is on: our signal would kill this child.
            bool clean = !recording() && timers::signal_number() == 0 && helper::tid() == 0;
            struct sigaction now{};
            for (const int signal : {SIGSTKFLT, SIGSEGV, SIGBUS})
                clean = clean && sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL;
            _exit(clean ? 0 : 1);
        }
        CHECK(g_threads_after_fork.exchange(0) <= most);
        held += helper::tid() == helper;
        int status = 1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    wait_for_helper();
    done.store(true);
    busy.join();
    CHECK(loss(Loss::forks_unrecorded) == 40);
    CHECK(counts_threads ? held == 0 : held > 0);
}

TEST(recording_forks) { fork_often(true); }

// Where no interpreter counts threads the helper stays, but at most while it works at that moment.
TEST(recording_forks_that_hold_the_helper) { fork_often(false); }

// A child that no fork handler knows of has our segments mapped, and must not write there.
TEST(recording_clone_without_handlers) {
    arm();
    const int64_t child = kernel::call(SYS_clone, SIGCHLD);
    if (child == 0) {
        lifecycle::begin_thread("child", 5);
        uint64_t ticket = 0;
        const bool written =
            tachograph_api()->reserve(static_cast<uint8_t>(Kind::state), 16, &ticket) != nullptr;
        const tg_span span{"of the child", "", 1, 2, 1, TG_NONE};
        _exit(written || tachograph_api()->span(&span) == 0 ? 1 : 0);
    }
    CHECK(child > 0);
    int status = 1;
    CHECK(waitpid(static_cast<pid_t>(child), &status, 0) == child && status == 0);
    spend_until_sampled();
    print_threads(1);
}

// Stopped and started by several at once, it is there in the end.
TEST(recording_helper_is_not_lost) {
    arm();
    for (int round = 0; round < 10; ++round) {
        std::thread others[3];
        for (std::thread& other : others)
            other = std::thread([] {
                for (int i = 0; i < 5; ++i) {
                    helper::stop();
                    helper::start();
                }
            });
        for (std::thread& other : others) other.join();
        helper::start();
        const uint64_t ticks = __atomic_load_n(&spool::control()->wait_ticks, __ATOMIC_RELAXED);
        for (int tries = 0;; ++tries, usleep(1000)) {
            CHECK(tries < 5000);
            if (__atomic_load_n(&spool::control()->wait_ticks, __ATOMIC_RELAXED) > ticks + 2) break;
        }
    }
}

// The process ends while handlers run in threads that are not waited for.
TEST(recording_exit_while_threads_run) {
    arm();
    for (int i = 0; i < 6; ++i)
        std::thread([] {
            lifecycle::begin_thread("daemon", 6);
            for (;;) spend(kMillisecond);
        }).detach();
    usleep(100'000);
}

TEST(recording_signal_taken_by_the_program) {
    arm();
    std::thread busy([] {
        lifecycle::begin_thread("busy", 4);
        spend(20 * kMillisecond);
    });
    const int first = timers::signal_number();
    timers::yield_signal();
    CHECK(timers::signal_number() != first && recording());
    busy.join();
    const uint64_t before = spool::control()->samples;
    for (int tries = 0; spool::control()->samples == before; ++tries) {
        CHECK(tries < 1000);
        spend(kMillisecond);
    }
    CHECK(loss(Loss::signal_conflicts) == 1);
    for (int i = 0; i < 20; ++i) timers::yield_signal();  // until none is left
    CHECK(!recording() && spool::control()->state == 3);
    CHECK(spool::control()->stop_errno == EBUSY);
    spend(5 * kMillisecond);
}

TEST(recording_refused_then_tried_again) {
    char error[200] = {};
    char missing[600];
    snprintf(missing, sizeof missing, "%s/missing", tests::folder);
    CHECK(arm(missing, error, sizeof error) == -1 && strstr(error, "No such file"));
    CHECK(!recording() && timers::signal_number() == 0 && threads_of_process() <= 2);
    arm();
    // A recorded process does not read its environment again.
    CHECK(lifecycle::arm(settings::options(), kWalker, error, sizeof error) == -1);
    CHECK(strstr(error, "already") && recording());
    spend(5 * kMillisecond);
}

TEST(recording_refused_as_no_signal_is_free) {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    CHECK(sigaction(SIGSTKFLT, &action, nullptr) == 0);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal)
        CHECK(sigaction(signal, &action, nullptr) == 0);
    char error[200] = {};
    CHECK(arm(tests::folder, error, sizeof error) == -1 && strstr(error, "no signal is free"));
    CHECK(!recording() && helper::tid() == 0);
    // The control file says so to every reader.
    CHECK(spool::control()->state == 3 && spool::control()->stop_errno == EBUSY);
    CHECK(spool::control()->end_ns != 0);
    struct sigaction now{};
    CHECK(sigaction(SIGSEGV, nullptr, &now) == 0 && now.sa_handler == SIG_DFL);
}

TEST(recording_refused_as_no_thread_key_is_free) {
    pthread_key_t first = 0;
    CHECK(pthread_key_create(&first, nullptr) == 0);
    CHECK(pthread_setspecific(first, &first) == 0);
    pthread_key_t key = 0;
    while (pthread_key_create(&key, nullptr) == 0) {
    }
    char error[200] = {};
    CHECK(arm(tests::folder, error, sizeof error) == -1 && strstr(error, "thread-specific"));
    CHECK(!recording() && timers::signal_number() == 0);
    CHECK(pthread_getspecific(first) == &first);  // no other key was touched
}

TEST(recording_stops_when_the_disk_is_full) {
    arm();
    stop_early(ENOSPC);
    stop_early(EIO);  // the first one counts
    CHECK(!recording() && spool::control()->state == 3 && spool::control()->stop_errno == ENOSPC);
    spend(10 * kMillisecond);
    CHECK(loss(Loss::recording_stopped) == 1);
    std::thread([] { spend(kMillisecond); }).join();
}
