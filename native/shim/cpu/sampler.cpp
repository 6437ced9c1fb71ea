// The CPU sampler: what happens when a thread's CPU timer expires.
#include "arch/registers.h"
#include "base/fault.h"
#include "base/kernel.h"
#include "cpu/positions.h"
#include "cpu/signal_mask.h"
#include "cpu/timers.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "stacks/native_path.h"
#include "stacks/own_stack.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/threads.h"

#include <sys/resource.h>
#include <ucontext.h>
#include <algorithm>
#include <cerrno>

namespace tachograph::sampler {
namespace {

int64_t system_ns() {
    rusage usage{};
    if (kernel::call(SYS_getrusage, RUSAGE_THREAD, kernel::address(&usage)) != 0) return -1;
    return static_cast<int64_t>(usage.ru_stime.tv_sec) * 1'000'000'000 +
           static_cast<int64_t>(usage.ru_stime.tv_usec) * 1'000;
}

// What of a sample was in the kernel, by the thread's system time until now; -1 if that is not
// known.
int64_t system_part(const threads::Thread& thread, int64_t system, int64_t weight) {
    if (system < 0 || thread.sampled_system_ns < 0) return -1;
    return std::clamp<int64_t>(system - thread.sampled_system_ns, 0, weight);
}

struct Interrupted {
    threads::Thread* thread;
    const ucontext_t* context;
};

// `walked`: with the Python stack, for which there must be room on this stack.
void sample(const Interrupted& interrupted, bool walked) {
    threads::Thread* thread = interrupted.thread;
    const ucontext_t* context = interrupted.context;
    const bool fault_gets_through = fault::gets_through(context);
    const int64_t cpu = kernel::own_cpu_ns();
    const int64_t time = kernel::monotonic_ns();
    const int64_t system = system_ns();
    // Taken, not read: the helper may be about to report the same time from outside.
    const int64_t weight = cpu - thread->sampled_cpu_ns.exchange(cpu, std::memory_order_relaxed);
    const uint32_t overruns = timers::schedule_next(thread, cpu);

    if (!recorder().paused.load(std::memory_order_relaxed) && weight > 0) {
        tg_walk found = kNotWalked;
        native_path::Found native;
        if (walked) {
            native = native_path::walk(fault_gets_through, unwind::registers_of(*context), &found);
        } else {
            found.state = TG_STACK_LOST;
            spool::count(Loss::stacks_lost);
        }
        const int64_t in_kernel = system_part(*thread, system, weight);
        sources::sampled({thread, context, found, native.stack, static_cast<uint8_t>(native.path),
                          fault_gets_through, time, weight, in_kernel});
        const spool::Ticket ticket = spool::reserve(Kind::cpu, sizeof(CpuRecord));
        if (ticket.record) {
            auto* record = reinterpret_cast<CpuRecord*>(ticket.record);
            record->time_ns = time;
            record->cpu_ns = weight;
            record->system_ns = in_kernel;
            record->pc = arch::pc_of(*context);
            record->thread = thread->id;
            record->stack = found.stack;
            record->overruns = overruns;
            record->gil = found.gil;
            record->opcode = found.opcode;
            record->origin = static_cast<uint8_t>(Origin::timer);
            record->stack_state = found.state;
            record->native_stack = native.stack;
            record->native_path = static_cast<uint8_t>(native.path);
            record->collecting = found.collecting;
            record->span = found.span;
            modules::saw(record->pc);
            spool::commit(ticket);
            __atomic_fetch_add(&spool::control()->samples, 1, __ATOMIC_RELAXED);
        }
        if (walked && found.state != TG_STACK_NONE)
            thread->python.store(true, std::memory_order_relaxed);
        if (walked && ticket.record && !thread->python.load(std::memory_order_relaxed))
            positions::write({*thread, time, native.work_holder}, fault_gets_through);
    } else if (weight > 0) {
        thread->unrecorded_cpu_ns.fetch_add(weight, std::memory_order_relaxed);
    }

    // Our own time is not charged to the program.
    const int64_t after = kernel::own_cpu_ns();
    thread->sampled_cpu_ns.store(after, std::memory_order_relaxed);
    thread->sampled_system_ns = system;
    thread->unrecorded_cpu_ns.fetch_add(after - cpu, std::memory_order_relaxed);
    __atomic_fetch_add(&spool::control()->handler_cpu_ns, after - cpu, __ATOMIC_RELAXED);
    if (recorder().walker.calls_sampled && !recorder().paused.load(std::memory_order_relaxed))
        recorder().walker.calls_sampled();
}

// On a stack of ours.
void sample_aside(void* argument) {
    const auto& interrupted = *static_cast<const Interrupted*>(argument);
    own_stack::spare_alternate(interrupted.context);
    sample(interrupted, true);
}

// Takes the calling thread's clocks as the beginning of its first sample.
void enter(threads::Thread* own, bool known) {
    signal_mask::unblock();
    if (known) return;  // its time counts from when it was found
    own->sampled_system_ns = system_ns();
    own->sampled_cpu_ns.store(kernel::own_cpu_ns(), std::memory_order_relaxed);
}

// The sampling signal's handler. Allocates nothing, takes no lock, calls nothing that could.
void on_timer(int, siginfo_t* info, void* context) {
    const AtWork at_work;
    const int saved = errno;
    void* value = info->si_value.sival_ptr;
    // A late signal of a timer that is gone must find nothing: the slot may be another thread's.
    if (recording() && info->si_code == SI_TIMER && threads::is_slot(value)) {
        auto* thread = static_cast<threads::Thread*>(value);
        Interrupted interrupted{thread, static_cast<const ucontext_t*>(context)};
        if (thread->tid.load(std::memory_order_acquire) == kernel::gettid() &&
            !own_stack::run(sample_aside, &interrupted))
            sample(interrupted, false);
    }
    errno = saved;
}

constexpr Source kSource{
    .name = "cpu",
    .prepare = [](const tg_options&) { return own_stack::open(); },
    .start = [] { return timers::install(on_timer); },
    .tick =
        [](int64_t now_ns) {
            timers::arm_those_that_blocked(now_ns);
            return true;
        },
    .stop = timers::disarm_all,
    .uninstall = timers::retire,
    .cost = [] { return __atomic_load_n(&spool::control()->handler_cpu_ns, __ATOMIC_RELAXED); },
    .watch = timers::arm,
    .unwatch = timers::disarm,
    .enter = enter,
    .after_fork =
        [](bool in_child) {
            if (in_child) timers::remove();
        },
    .forget = own_stack::forget,
};
TG_REGISTER_SOURCE(kSource);

}  // namespace
}  // namespace tachograph::sampler
