// Functions of libc's that the preloaded library interposes. The rule for each: the program must
// see what it would have seen without us. Before arming, and in unrecorded children, all of them
// call libc's at once.
#include "arch/registers.h"
#include "base/fault.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/safe_read.h"
#include "base/trap_signal.h"
#include "cpu/signal_mask.h"
#include "cpu/timers.h"
#include "hooks/interposed.h"
#include "memory/libc_allocators.h"
#include "process/lifecycle.h"
#include "spool/child_ends.h"
#include "spool/layout.h"
#include "stacks/modules.h"
#include "stacks/recorder.h"
#include "stacks/threads.h"

#include <sys/syscall.h>
#include <sys/types.h>
#include <cerrno>
#include <cstring>

namespace tachograph {
namespace {

struct Start {
    void* (*function)(void*);
    void* argument;
    uint32_t creator;
    threads::Beginning beginning;
    bool blocks_sampling;  // as far as the program knows
    size_t name_length;
    char name[256];
};

struct Routine {
    void* (*function)(void*);
    void* argument;
};

// 0: not known.
size_t stack_size(const pthread_attr_t* attributes) {
    size_t size = 0;
    if (attributes) return pthread_attr_getstacksize(attributes, &size) == 0 ? size : 0;
    pthread_attr_t usual;
    if (pthread_attr_init(&usual) != 0) return 0;
    if (pthread_attr_getstacksize(&usual, &size) != 0) size = 0;
    pthread_attr_destroy(&usual);
    return size;
}

__attribute__((noinline)) Routine begin_thread(void* value) {
    const Start start = *static_cast<Start*>(value);
    libc_allocators::g_real.free(value);
    if (recording()) {
        signal_mask::inherit(start.blocks_sampling);
        lifecycle::begin_thread(start.name, start.name_length, start.beginning);
        if (const threads::Thread* own = threads::own()) {
            const auto address = reinterpret_cast<uint64_t>(start.function);
            modules::saw(address);
            threads::write_origin(own->id, start.creator, address);
        }
    }
    return {start.function, start.argument};
}

// What the kernel takes for struct sigaction.
struct KernelAction {
    uintptr_t handler;
    uint64_t flags;
    uintptr_t restorer;
    uint64_t mask;
};
constexpr uint64_t kHasRestorer = 0x04000000;

bool is_fronted(int signal) { return fault::fronts(signal) || trap_signal::fronts(signal); }

bool is_sampling(int signal) { return recording() && signal == timers::signal_number() && live(); }

// A jump, not a call: no frame of ours stays in the thread's native call paths.
void* run_thread(void* value) {
    arch::keep_preserved(static_cast<Start*>(value)->beginning.registers);
    const Routine routine = begin_thread(value);
    return routine.function(routine.argument);
}

}  // namespace

long raw_sigaction(long signal, long action, long old, long size) {
    const int number = static_cast<int>(signal);
    const bool samples = is_sampling(number);
    if ((!is_fronted(number) && !samples) || size != sizeof(uint64_t))
        return kernel::call(SYS_rt_sigaction, signal, action, old, size);
    KernelAction given{};
    KernelAction before{};
    if (action != 0 &&
        !safe_read::copy(&given, reinterpret_cast<const void*>(action), sizeof given))
        return -EFAULT;
    if (old != 0 && !safe_read::readable(static_cast<uintptr_t>(old))) return -EFAULT;
    if (samples) {
        long result = 0;
        if (action != 0) {
            timers::yield_signal();
            result = kernel::call(SYS_rt_sigaction, signal, action, 0, size);
        }
        if (result == 0 && old != 0) memset(reinterpret_cast<void*>(old), 0, sizeof before);
        return result;
    }
    kernel::call(SYS_rt_sigaction, signal, 0, kernel::address(&before), size);  // for the restorer
    struct sigaction set{};
    struct sigaction was{};
    set.sa_handler = reinterpret_cast<sighandler_t>(given.handler);
    set.sa_flags = static_cast<int>(given.flags & ~kHasRestorer);
    memcpy(&set.sa_mask, &given.mask, sizeof given.mask);
    if (::sigaction(number, action != 0 ? &set : nullptr, &was) != 0) return -errno;
    if (old == 0) return 0;
    // One that is set back by its number needs it.
    const bool is_function = was.sa_handler != SIG_DFL && was.sa_handler != SIG_IGN;
    if (!is_function) before = {};
    before.handler = reinterpret_cast<uintptr_t>(was.sa_handler);
    before.flags = static_cast<unsigned>(was.sa_flags) | (before.flags & kHasRestorer);
    memcpy(&before.mask, &was.sa_mask, sizeof before.mask);
    memcpy(reinterpret_cast<void*>(old), &before, sizeof before);
    return 0;
}

}  // namespace tachograph

using namespace tachograph;

TG_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
    if (fault::fronts(signal)) return fault::set_program_action(signal, action, old);
    if (trap_signal::fronts(signal)) return trap_signal::set_program_action(signal, action, old);
    if (is_sampling(signal)) {
        if (!action) {
            if (old) memset(old, 0, sizeof *old);  // SIG_DFL, as before us
            return 0;
        }
        timers::yield_signal();
        const int result = real::sigaction(signal, action, old);
        if (result == 0 && old) memset(old, 0, sizeof *old);
        return result;
    }
    return real::sigaction(signal, action, old);
}

TG_EXPORT int sigaltstack(const stack_t* stack, stack_t* old) {
    const long result = kernel::call(SYS_sigaltstack, kernel::address(stack), kernel::address(old));
    if (result != 0) {
        errno = static_cast<int>(-result);
        return -1;
    }
    if (stack && live()) timers::saw_alternate_stack(*stack);
    return 0;
}

TG_EXPORT sighandler_t signal(int number, sighandler_t handler) {
    if (!fault::fronts(number) && !trap_signal::fronts(number) &&
        !(recording() && number == timers::signal_number()))
        return real::signal(number, handler);
    struct sigaction action;
    struct sigaction old;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;  // as glibc's signal does
    sigaddset(&action.sa_mask, number);
    if (::sigaction(number, &action, &old) != 0) return SIG_ERR;
    return old.sa_handler;
}

TG_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
    return signal_mask::change(real::pthread_sigmask, how, set, old);
}

TG_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* old) {
    return signal_mask::change(real::sigprocmask, how, set, old);
}

TG_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                             void* (*function)(void*), void* argument) {
    child_ends::made_thread();
    if (!recording()) return real::pthread_create(thread, attributes, function, argument);
    auto* start = static_cast<Start*>(libc_allocators::g_real.malloc(sizeof(Start)));
    if (!start) return real::pthread_create(thread, attributes, function, argument);
    start->function = function;
    start->argument = argument;
    const threads::Thread* own = threads::current();
    start->creator = own ? own->id.load(std::memory_order_relaxed) : kNone;
    start->beginning.stack_size = stack_size(attributes);
    start->blocks_sampling = signal_mask::passes_on(attributes);
    start->name_length = recorder().walker.thread_name(start->name, sizeof start->name);
    const int result = real::pthread_create(thread, attributes, run_thread, start);
    if (result != 0) libc_allocators::g_real.free(start);
    return result;
}
