#include "cpu/signal_mask.h"

#include "base/kernel.h"
#include "base/libc.h"
#include "base/trap_signal.h"
#include "cpu/timers.h"
#include "stacks/recorder.h"

#include <dlfcn.h>

namespace tachograph::signal_mask {
namespace {

// Whether the program believes that it blocks the signal that is ours.
__thread bool t_believes_blocked __attribute__((tls_model("initial-exec"))) = false;
// A vfork child of this thread that has set its mask itself: the kernel has it as it was set.
__thread pid_t t_child_has_set __attribute__((tls_model("initial-exec"))) = 0;

sigset_t only(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    return set;
}

}  // namespace

int change(int (*real)(int, const sigset_t*, sigset_t*), int how, const sigset_t* set,
           sigset_t* old) {
    const int ours = recording() ? timers::signal_number() : 0;
    // A vfork child has this thread's memory, but a mask of its own.
    if (!live()) {
        if (ours != 0 && set && (how == SIG_SETMASK || sigismember(set, ours) == 1))
            t_child_has_set = kernel::getpid();
        return real(how, set, old);
    }
    const bool blocks_trap = trap_signal::blocks(how, set);
    const sigset_t sampling = ours != 0 ? only(ours) : sigset_t{};
    sigset_t before{};
    if (blocks_trap) {
        // A sample in between could arm what then traps while that is blocked, and stays pending.
        real(SIG_BLOCK, &sampling, &before);
        trap_signal::blocked();
    }
    if (ours == 0) return real(how, set, old);
    const bool believed = t_believes_blocked;
    sigset_t reduced;
    const sigset_t* given = set;
    if (set) {
        const bool named = sigismember(set, ours) == 1;
        reduced = *set;
        if (how == SIG_BLOCK || how == SIG_SETMASK) {
            sigdelset(&reduced, ours);
            given = &reduced;
        }
        if (how == SIG_SETMASK) t_believes_blocked = named;
        if (how == SIG_BLOCK && named) t_believes_blocked = true;
        if (how == SIG_UNBLOCK && named) t_believes_blocked = false;
    }
    const int result = real(how, given, blocks_trap ? old : &before);
    // A thread that blocked it before the recording began still does, in the kernel as well.
    const bool blocked = sigismember(&before, ours) == 1;
    if (blocks_trap && !blocked) real(SIG_UNBLOCK, &sampling, nullptr);
    if (result != 0) t_believes_blocked = believed;
    if (result == 0 && old) {
        if (!blocks_trap) *old = before;
        believed || blocked ? sigaddset(old, ours) : sigdelset(old, ours);
    }
    return result;
}

bool passes_on(const pthread_attr_t* attributes) {
    if (!attributes) return t_believes_blocked;
    // Since glibc 2.32 the attributes may have a mask of their own; the kernel gets that as it is.
    using Get = int (*)(const pthread_attr_t*, sigset_t*);
    static const auto get =
        reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "pthread_attr_getsigmask_np"));
    sigset_t own;
    return !(get && get(attributes, &own) == 0) && t_believes_blocked;
}

void inherit(bool passed) { t_believes_blocked = passed; }

void unblock() {
    const int ours = timers::signal_number();
    if (ours == 0) return;
    const sigset_t set = only(ours);
    sigset_t before;
    if (real::pthread_sigmask(SIG_UNBLOCK, &set, &before) == 0 && sigismember(&before, ours) == 1)
        t_believes_blocked = true;
}

AsSet::AsSet() {
    const int ours = recording() ? timers::signal_number() : 0;
    if (ours == 0 || !t_believes_blocked) return;
    if (!live() && t_child_has_set == kernel::getpid()) return;
    const sigset_t set = only(ours);
    if (real::pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0) blocked_ = ours;
}

AsSet::~AsSet() {
    if (blocked_ == 0) return;
    const sigset_t set = only(blocked_);
    real::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace tachograph::signal_mask
