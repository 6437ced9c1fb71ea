#include "process/helper.h"

#include "base/fault.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/safe_read.h"
#include "process/survey.h"
#include "spool/child_ends.h"
#include "spool/layout.h"
#include "spool/own_memory.h"
#include "spool/settings.h"
#include "spool/spool.h"
#include "stacks/generation_turns.h"
#include "stacks/modules.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/threads.h"
#include "tachograph/mixing.h"
#include "waits/blocked.h"

#include <linux/close_range.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <initializer_list>

namespace tachograph::helper {
namespace {

constexpr int64_t kSurveyPeriodNs = 1'000'000'000;
constexpr int64_t kFastestPaceNs = 5'000'000;
constexpr int64_t kSlowestPace = 4;  // intervals
constexpr int64_t kLongestRestNs = 50'000'000;
// A forked child that ends within this time never has a helper at work.
constexpr int64_t kChildsRestNs = 20'000'000;

// What comes before the first tick of a helper (kRests) can be called off by the thread that ends
// the process, which then need not wait for it. There and between ticks (kPauses) a thread that
// forks can hold it: it has nothing half done that the child would get.
enum : int { kWorks, kRests, kPauses, kBorrowed, kHeld, kCalledOff };
constexpr int64_t kHeldNs = 1'000'000;

struct State {
    std::atomic<int> stop{0};     // futex: 1 = end
    std::atomic<int> running{0};  // futex: 1 = the thread runs
    std::atomic<int> tid{0};      // its thread id, 0 while it does not run
    std::atomic<int> latest{0};   // the thread id of the latest helper, which may have ended
    std::atomic<int> last{0};     // 1 = all threads of the program have ended
    std::atomic<int> refused{0};  // 1 = there can be no helper in this process
    std::atomic<int> phase{kWorks};
    std::atomic<int> holder{0};      // the thread that holds it
    int held_in = kRests;            // the phase in which it does
    std::atomic<uint32_t> holds{0};  // how often it was held
    int64_t due_ns = 0;              // time of the next tick; kept when the helper is stopped
    int64_t surveyed_ns = 0;         // time of the last survey of threads
};
constinit State g;

long futex(std::atomic<int>* word, int operation, int value, int64_t timeout_ns) {
    const timespec timeout = kernel::to_timespec(timeout_ns);
    return kernel::call(SYS_futex, kernel::address(word), operation | FUTEX_PRIVATE_FLAG, value,
                        timeout_ns > 0 ? kernel::address(&timeout) : 0);
}

// Tried with arguments that change nothing, before the thread is created: a thread that failed to
// separate its table would share the program's.
bool may_separate_descriptors() {
    return kernel::call(SYS_close_range, UINT_MAX, UINT_MAX, 0) == 0 ||
           kernel::call(SYS_unshare, 0) == 0;
}

bool separate_descriptors() {
    if (kernel::call(SYS_close_range, 0, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0) return true;
    // Before Linux 5.9: copies the table, then closes each descriptor.
    if (kernel::call(SYS_unshare, 0x00000400 /* CLONE_FILES */) != 0) return false;
    for (int fd = 0; fd < 65536; ++fd) kernel::call(SYS_close, fd);
    return true;
}

// A busy machine would let the helper run when the program's threads have just gone to sleep: what
// they and their tasks do would be looked at while they wait, more often than not. A thread that
// asks for short slices runs as soon as it wakes (Linux 6.12 and later; others ignore it). Not
// where there is a filter of system calls: it may kill a process that makes this one (systemd's
// SystemCallFilter=~@resources).
void ask_for_short_slices() {
    constexpr uint64_t kSliceNs = 100'000;  // the shortest that there is
    struct {                                // struct sched_attr, which libraries may lack
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } settings{};
    static_assert(sizeof settings == 48);
    if (kernel::call(SYS_prctl, PR_GET_SECCOMP) != 0) return;
    if (kernel::call(SYS_sched_getattr, 0, kernel::address(&settings), sizeof settings, 0) != 0 ||
        settings.policy != SCHED_OTHER)
        return;
    settings.runtime_ns = kSliceNs;
    kernel::call(SYS_sched_setattr, 0, kernel::address(&settings), 0);
}

// Records without a helper: into the two first segments, with no wait samples.
void go_without() {
    if (g.refused.exchange(1) != 0) return;
    spool::count(Loss::helper_refused);
    if (const int error = spool::prepare_second(); error != 0) stop_early(error);
}

void leave() {
    g.running.store(0);
    futex(&g.running, FUTEX_WAKE, INT_MAX, 0);
}

// Waits while another thread has the helper. False: called off.
bool begin_to_work(int from) {
    for (;;) {
        int expected = from;
        if (g.phase.compare_exchange_strong(expected, kWorks)) return true;
        if (expected == kHeld)
            futex(&g.phase, FUTEX_WAIT, kHeld, kHeldNs);
        else if (expected == kBorrowed)
            kernel::call(SYS_sched_yield);
        else
            return expected == kWorks;
    }
}

// Sleeps, but not past a request of the recording command or a call of `stop`.
void rest(int64_t pause) {
    g.phase.store(kPauses);
    while (pause > 0 && g.stop.load(std::memory_order_acquire) == 0 && !spool::stop_requested() &&
           !spool::may_start_next_segment()) {
        const int64_t part = pause < kLongestRestNs ? pause : kLongestRestNs;
        futex(&g.stop, FUTEX_WAIT, 0, part);
        begin_to_work(kPauses);
        child_ends::flush();
        g.phase.store(kPauses);
        pause -= part;
    }
    begin_to_work(kPauses);
}

// Until the first tick is due, or something is to be done before. False: called off.
bool rest_at_first() {
    int64_t pause = spool::kMomentNs;
    while (g.stop.load(std::memory_order_acquire) == 0 && recording()) {
        if (child_ends::any_waits()) {
            if (!begin_to_work(kRests)) return false;
            child_ends::flush();
            g.phase.store(kRests);
        }
        const int64_t left = g.due_ns - kernel::monotonic_ns();
        if (left <= 0 || spool::is_half_full() || spool::stop_requested() ||
            spool::may_start_next_segment())
            break;
        futex(&g.stop, FUTEX_WAIT, 0, left < pause ? left : pause);
        pause *= 2;
    }
    return begin_to_work(kRests);
}

void work() {
    if (!rest_at_first()) return;
    auto random = mix(static_cast<uint64_t>(kernel::gettid()));
    const int64_t interval =
        recorder().interval_ns > kFastestPaceNs ? recorder().interval_ns : kFastestPaceNs;
    const int64_t earlier_cpu_ns = spool::control()->helper_cpu_ns;
    int64_t pace = interval;
    int64_t last = kernel::monotonic_ns();
    while (g.stop.load(std::memory_order_acquire) == 0 && recording()) {
        safe_read::use_kernel(!fault::verify());
        if (const int error = spool::maintain(); error != 0) {
            stop_early(error);
            break;
        }
        generation_turns::maintain(kernel::monotonic_ns(), spool::may_start_next_segment());
        if (spool::may_start_next_segment()) sources::window_ends();
        spool::start_next_segment();
        if (spool::stop_requested()) {
            // The recording has ended, and the process has not.
            settings::stop_passing_to_children();
            end_recording(ControlState::ended);
            break;
        }
        const int64_t now = kernel::monotonic_ns();
        const bool survey = now - g.surveyed_ns > kSurveyPeriodNs || !threads::any();
        modules::refresh(survey);
        child_ends::flush();
        if (survey) {
            g.surveyed_ns = now;
            own_memory::look();
            if (!survey::look(false, g.tid.load(std::memory_order_relaxed))) {
                g.last.store(1);  // no other thread is left: the process ends with this one
                break;
            }
        }
        if (now - last > 2 * pace + interval) spool::count(Loss::sampler_late);
        last = now;
        // Waking up is most of what a tick costs; while nothing changes there is less to see.
        pace = !sources::tick(now)                      ? interval
               : pace * 3 / 2 < kSlowestPace * interval ? pace * 3 / 2
                                                        : kSlowestPace * interval;
        // It is another thread after each fork, with a clock of its own.
        __atomic_store_n(&spool::control()->helper_cpu_ns, earlier_cpu_ns + kernel::own_cpu_ns(),
                         __ATOMIC_RELAXED);

        const int64_t pause =
            pace / 2 + static_cast<int64_t>(next_random(&random) >> 54) * pace / 1024;
        const int64_t rests = spool::in_first_moment() ? spool::kMomentNs : pause;
        g.due_ns = kernel::monotonic_ns() + rests;
        const uint32_t holds = g.holds.load(std::memory_order_relaxed);
        rest(rests);
        // A fork may have taken long: it is not late by that.
        if (g.holds.load(std::memory_order_relaxed) != holds) last = kernel::monotonic_ns();
    }
}

void* run(void*) {
    prctl(PR_SET_NAME, "tachograph");
    const int own = kernel::gettid();
    g.latest.store(own);
    if (!separate_descriptors()) {
        // What it opens would take numbers that the program is about to get.
        if (begin_to_work(kRests)) go_without();
        leave();
        return nullptr;
    }
    // Own root directory, working directory and umask: not those that the program sets later.
    kernel::call(SYS_unshare, 0x00000200 /* CLONE_FS */);
    ask_for_short_slices();
    int expected = 0;
    do {
        g.tid.store(own);
        work();
        if (g.phase.load() == kWorks) child_ends::flush();
        g.tid.store(0);
        leave();
        // A `start` that came while this thread still ran has created no other one: go on.
        expected = 0;
        if (g.phase.load() == kCalledOff) break;
    } while (g.stop.load() == 0 && g.last.load() == 0 && recording() &&
             g.running.compare_exchange_strong(expected, 1));
    // The exit status of a process is that of the thread that ends last. Where the main thread
    // ended by a raw SYS_exit, it must be that thread's.
    int status = 0;
    if (g.last.load() != 0 && blocked::is_dead(kernel::getpid(), &status) && status != 0)
        kernel::call(SYS_exit, status >> 8 & 0xFF);
    return nullptr;
}

// Until the kernel has removed the thread, CPython counts it among the process's threads.
void wait_until_gone(int64_t limit) {
    const int tid = g.latest.load();
    while (tid != 0 && tid != kernel::gettid() &&
           kernel::call(SYS_tgkill, kernel::getpid(), tid, 0) == 0 &&
           kernel::monotonic_ns() < limit && g.running.load() == 0)
        kernel::call(SYS_sched_yield);
}

}  // namespace

bool is_there() { return g.running.load() != 0; }

int tid() { return g.tid.load(std::memory_order_acquire); }

void start(bool in_new_child) {
    if (g.refused.load() != 0) return;
    recorder().helper_stops.store(false);
    g.stop.store(0);  // first: a helper that is about to end reads it once more
    int expected = 0;
    if (!g.running.compare_exchange_strong(expected, 1)) {
        futex(&g.running, FUTEX_WAKE, INT_MAX, 0);  // ends the wait of another thread's `stop`
        return;
    }
    if (!may_separate_descriptors()) {
        leave();
        go_without();
        return;
    }
    if (in_new_child) g.due_ns = kernel::monotonic_ns() + kChildsRestNs;
    g.phase.store(kRests);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    // The new thread inherits this mask: it takes no signal of the program's, only its own faults.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS}) sigdelset(&all, fault);
    real::pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int failed = real::pthread_create(&thread, &attributes, run, nullptr);
    if (failed == EINVAL) {
        // The stack is too small for the static thread-local storage of this program's libraries.
        pthread_attr_destroy(&attributes);
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        failed = real::pthread_create(&thread, &attributes, run, nullptr);
    }
    real::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    if (!failed) return;
    leave();
    go_without();
}

void wake() { futex(&g.stop, FUTEX_WAKE, INT_MAX, 0); }

bool borrow() {
    int expected = kRests;
    return g.running.load() != 0 && g.phase.compare_exchange_strong(expected, kBorrowed);
}

void give_back() { g.phase.store(kRests); }

bool hold() {
    if (g.running.load() == 0) return false;
    for (const int phase : {kPauses, kRests}) {
        int expected = phase;
        if (!g.phase.compare_exchange_strong(expected, kHeld)) continue;
        g.held_in = phase;
        g.holds.fetch_add(1, std::memory_order_relaxed);
        g.holder.store(kernel::gettid());
        return true;
    }
    return false;
}

void release() {
    if (g.holder.load() != kernel::gettid()) return;
    g.holder.store(0);
    g.phase.store(g.held_in);
    futex(&g.phase, FUTEX_WAKE, INT_MAX, 0);
}

bool call_off() {
    int expected = kRests;
    if (g.running.load() == 0 || !g.phase.compare_exchange_strong(expected, kCalledOff))
        return false;
    recorder().helper_stops.store(true);
    g.stop.store(1);
    return true;
}

void stop(int64_t patience_ns) {
    recorder().helper_stops.store(true);
    g.stop.store(1);
    futex(&g.stop, FUTEX_WAKE, INT_MAX, 0);
    const int64_t limit = kernel::monotonic_ns() + patience_ns;
    // `stop` is 0 again if another thread, after its fork, has called `start` meanwhile.
    while (g.running.load() != 0 && g.stop.load() != 0) {
        const int64_t left = limit - kernel::monotonic_ns();
        if (left <= 0) break;
        futex(&g.running, FUTEX_WAIT, 1, left);
    }
    wait_until_gone(limit);
}

void start_anew() {
    if (g.running.load() == 0) return;
    stop();
    if (g.running.load() == 0) {
        start();
        return;
    }
    // It most likely waits for a disk, ends after that, and is not replaced: with the program's
    // former rights it only finishes what it has begun.
    if (g.refused.exchange(1) == 0) spool::count(Loss::helper_refused);
}

void forget() {
    recorder().helper_stops.store(false);
    g.stop.store(0);
    g.running.store(0);
    g.tid.store(0);
    g.latest.store(0);
    g.last.store(0);
    g.refused.store(0);
    g.phase.store(kWorks);
    g.holder.store(0);
    g.due_ns = g.surveyed_ns = 0;
}

}  // namespace tachograph::helper
