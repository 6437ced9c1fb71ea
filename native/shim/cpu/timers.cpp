#include "cpu/timers.h"

#include "base/bounded_lock.h"
#include "base/kernel.h"
#include "base/kernel_text.h"
#include "base/libc.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/recorder.h"
#include "tachograph/mixing.h"

#include <sys/auxv.h>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace tachograph::timers {
namespace {

struct State {
    Handler handler = nullptr;
    std::atomic<bool> small_alternate_stacks{false};
    int64_t look_at_blocked_ns = 0;  // of the recorder's own thread
    struct sigaction before{};
};
constinit State g;

// SIGSTKFLT has had no use since the 387 emulator, which leaves it to us; after it the real-time
// signals from the top, where libraries look last.
int candidate(int index) { return index == 0 ? SIGSTKFLT : SIGRTMAX - 1 - index; }
constexpr int kCandidates = 12;
// What the handler takes of the stack that it is delivered on, besides the kernel's frame.
constexpr size_t kHandlerRoom = 1024;

// sigevent as the kernel has it (glibc names the member only through a macro of its own).
struct KernelSigevent {
    void* value;
    int signal;
    int notify;
    int tid;
    int padding[11];
};
static_assert(sizeof(KernelSigevent) == 64);
constexpr int kNotifyThread = 4;  // SIGEV_THREAD_ID

// Uniform in [0.5, 1.5) intervals: the mean is the interval, and no period of the program's can
// keep step with it.
int64_t jittered(threads::Thread* thread) {
    const int64_t interval = recorder().interval_ns;
    return interval / 2 +
           static_cast<int64_t>(next_random(&thread->random) >> 54) * interval / 1024;
}

// The schedule of a thread begins as if it had gone on for ever, so that every instant of its CPU
// time has the same chance to be sampled, also in threads shorter than the interval. The wait for
// the first target is the equilibrium delay of a renewal process with the steps of `jittered`
// (Cox, Renewal Theory, 1962, section 5.2): its density is 1 up to half an interval, and falls to 0
// from there to one and a half.
int64_t first_delay(threads::Thread* thread) {
    const double u = uniform(&thread->random);
    const double intervals = u < 0.5 ? u : 1.5 - __builtin_sqrt(2.0 * (1.0 - u));
    return static_cast<int64_t>(intervals * static_cast<double>(recorder().interval_ns));
}

// The kernel looks at CPU timers at its ticks only: the tick to come stands for all targets since
// the one before.
int64_t since_last_tick() {
    timespec tick{};
    kernel::call(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, kernel::address(&tick));
    const int64_t age = kernel::monotonic_ns() - kernel::clock_ns(CLOCK_MONOTONIC_COARSE);
    return age < 0 ? 0 : age < tick.tv_nsec ? age : tick.tv_nsec;
}

// A target that has passed already would ring at once, and always in the same place.
constexpr int64_t kNotAtOnce = 20'000;

int64_t first_target(threads::Thread* thread, int64_t cpu_ns) {
    const int64_t delay = first_delay(thread) - since_last_tick();
    return cpu_ns + (delay > kNotAtOnce ? delay : kNotAtOnce);
}

void set(int timer, int64_t at_cpu_ns) {
    itimerspec when{};
    when.it_value = kernel::to_timespec(at_cpu_ns);
    kernel::call(SYS_timer_settime, timer, TIMER_ABSTIME, kernel::address(&when), 0);
}

void create(threads::Thread* thread, pid_t tid) {
    if (thread->traced.load()) return;
    const bool blocks = tid != kernel::gettid() && threads::blocks(tid, signal_number());
    thread->blocks.store(blocks, std::memory_order_relaxed);
    if (blocks) return;
    KernelSigevent event;
    memset(&event, 0, sizeof event);
    event.value = thread;
    event.signal = signal_number();
    event.notify = kNotifyThread;
    event.tid = tid;
    int timer = -1;
    if (kernel::call(SYS_timer_create, kernel::thread_clock(tid), kernel::address(&event),
                     kernel::address(&timer)) != 0) {
        spool::count(Loss::timers_refused);
        return;
    }
    thread->timer.store(timer, std::memory_order_release);
    set(timer, thread->target_cpu_ns.load(std::memory_order_relaxed));
}

void destroy(threads::Thread* thread) {
    const int timer = thread->timer.exchange(-1, std::memory_order_acq_rel);
    if (timer >= 0) kernel::call(SYS_timer_delete, timer);
}

// Held for a few system calls, never in the sampling handler. Not waited for without end: a signal
// handler of the program's may have interrupted the holder on this very thread, and then two of us
// at work are better than a hang.
class Arming {
  public:
    explicit Arming(threads::Thread* thread) : flag_(thread->arming) { acquire(flag_, kTries); }
    ~Arming() { release(flag_); }
    Arming(const Arming&) = delete;
    Arming& operator=(const Arming&) = delete;

  private:
    static constexpr int kTries = 10'000;
    std::atomic_flag& flag_;
};

bool take(int signal) {
    struct sigaction now;
    if (real::sigaction(signal, nullptr, &now) != 0) return false;
    if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return false;
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = g.handler;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    if (!g.small_alternate_stacks.load()) ours.sa_flags |= SA_ONSTACK;
    // No handler of the program's may run, and jump, in the middle of ours; faults must get
    // through.
    sigfillset(&ours.sa_mask);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS})
        sigdelset(&ours.sa_mask, fault);
    if (real::sigaction(signal, &ours, nullptr) != 0) return false;
    g.before = now;
    recorder().signal.store(signal, std::memory_order_release);
    real::shield(signal);
    return true;
}

}  // namespace

int signal_number() { return recorder().signal.load(std::memory_order_acquire); }

// A debugger that has started the program. gdb knows no SIGSTKFLT: it would stop at each, and could
// not pass it on. It passes on real-time signals, if it is told to.
bool began_traced() {
    static const bool traced = is_traced();
    return traced;
}

int install(Handler handler) {
    g.handler = handler;
    stack_t stack{};
    if (kernel::call(SYS_sigaltstack, 0, kernel::address(&stack)) == 0) saw_alternate_stack(stack);
    for (int index = began_traced() ? 1 : 0; index < kCandidates; ++index)
        if (take(candidate(index))) return 0;
    return EBUSY;
}

void remove() {
    const int signal = recorder().signal.exchange(0);
    if (signal == 0) return;
    real::sigaction(signal, &g.before, nullptr);
    real::shield(0);
}

void retire() {
    const int signal = recorder().signal.exchange(0);
    if (signal == 0) return;
    struct sigaction now;
    if (real::sigaction(signal, nullptr, &now) == 0 && now.sa_sigaction == g.handler) {
        // One that was sent and not delivered yet would end the program by its default action.
        struct sigaction ignored;
        memset(&ignored, 0, sizeof ignored);
        ignored.sa_handler = SIG_IGN;
        real::sigaction(signal, &ignored, nullptr);
        real::sigaction(signal, &g.before, nullptr);
    }
    real::shield(0);
}

void saw_alternate_stack(const stack_t& stack) {
    const bool small = (stack.ss_flags & SS_DISABLE) == 0 &&
                       stack.ss_size < getauxval(AT_MINSIGSTKSZ) + kHandlerRoom;
    if (!small || g.small_alternate_stacks.exchange(true)) return;
    const int signal = signal_number();
    if (signal == 0) return;
    struct sigaction ours;
    if (real::sigaction(signal, nullptr, &ours) != 0 || ours.sa_sigaction != g.handler) return;
    ours.sa_flags &= ~SA_ONSTACK;
    real::sigaction(signal, &ours, nullptr);
}

void arm(threads::Thread* thread) {
    const pid_t tid = thread->tid.load(std::memory_order_acquire);
    const int64_t now = kernel::clock_ns(kernel::thread_clock(tid));
    const Arming hold(thread);
    thread->target_cpu_ns.store(first_target(thread, now < 0 ? 0 : now), std::memory_order_relaxed);
    // Who ends the recording deletes all timers afterwards, each when this is let go.
    if (recording()) create(thread, tid);
}

void disarm(threads::Thread* thread) {
    const Arming hold(thread);
    destroy(thread);
}

void arm_those_that_blocked(int64_t now_ns) {
    constexpr int64_t kPeriodNs = 500'000'000;
    if (now_ns < g.look_at_blocked_ns) return;
    g.look_at_blocked_ns = now_ns + kPeriodNs;
    for (uint32_t index = 0; index < threads::high_water(); ++index) {
        threads::Thread* thread = threads::at(index);
        const pid_t tid = thread->tid.load(std::memory_order_acquire);
        if (tid > 0 && thread->blocks.load(std::memory_order_relaxed) &&
            !threads::blocks(tid, signal_number()))
            arm(thread);
    }
}

void disarm_all() {
    for (uint32_t index = 0; index < threads::high_water(); ++index)
        if (threads::Thread* thread = threads::at(index);
            thread->tid.load(std::memory_order_acquire) > 0)
            disarm(thread);
}

uint32_t schedule_next(threads::Thread* thread, int64_t cpu_ns) {
    // The schedule is absolute in CPU time, so the kernel's tick delays samples but does not thin
    // them.
    // The thread that made the timer left the schedule behind it.
    const int timer = thread->timer.load(std::memory_order_acquire);
    int64_t target = thread->target_cpu_ns.load(std::memory_order_relaxed);
    uint32_t passed = 0;
    while (target <= cpu_ns && passed < 1000) {
        target += jittered(thread);
        ++passed;
    }
    if (target <= cpu_ns) target = cpu_ns + recorder().interval_ns;  // after a long pause
    thread->target_cpu_ns.store(target, std::memory_order_relaxed);
    set(timer, target);
    return passed > 0 ? passed - 1 : 0;
}

void yield_signal() {
    const int lost = signal_number();
    int index = 0;
    while (index < kCandidates && candidate(index) != lost) ++index;
    bool found = false;
    while (!found && ++index < kCandidates) found = take(candidate(index));
    if (!found) return stop_early(EBUSY);
    spool::count(Loss::signal_conflicts);
    for (uint32_t slot = 0; slot < threads::high_water(); ++slot) {
        threads::Thread* thread = threads::at(slot);
        const Arming hold(thread);
        const pid_t tid = thread->tid.load(std::memory_order_acquire);
        if (tid <= 0) continue;
        destroy(thread);
        create(thread, tid);
    }
}

}  // namespace tachograph::timers
