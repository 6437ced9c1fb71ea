#include "base/fault.h"

#include "arch/registers.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/safe_read.h"
#include "base/sandbox.h"

#include <ucontext.h>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace tachograph::fault {
namespace {

// Actions are published as whole values: the handler reads a pointer, writers fill the next place.
struct Front {
    struct sigaction actions[16] = {};
    std::atomic<uint32_t> claimed{0};    // count of places given out
    std::atomic<uint32_t> published{0};  // the current one is actions[published % 16]
};

struct State {
    Front fronts[2] = {};
    std::atomic<bool> installed{false};
    std::atomic<bool> trusted{false};
    pid_t pid = 0;
};
constinit State g;

int index_of(int signal) { return signal == SIGSEGV ? 0 : signal == SIGBUS ? 1 : -1; }

const struct sigaction& program_action(int index) {
    Front& front = g.fronts[index];
    return front.actions[front.published.load(std::memory_order_acquire) % 16];
}

// No lock: a program's signal handler may call sigaction in the middle of another call of it.
void publish(int index, const struct sigaction& action) {
    Front& front = g.fronts[index];
    const uint32_t next = front.claimed.fetch_add(1, std::memory_order_relaxed) + 1;
    front.actions[next % 16] = action;
    front.published.store(next, std::memory_order_release);
}

void on_fault(int signal, siginfo_t* info, void* context);

// The kernel is given the program's own mask and flags, so that its handler, called from ours, runs
// as it would have run alone.
void put_front(int signal, const struct sigaction& program) {
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    if (is_function(program)) {
        ours.sa_mask = program.sa_mask;
        ours.sa_flags = (program.sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
    } else {
        sigemptyset(&ours.sa_mask);
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    }
    real::sigaction(signal, &ours, nullptr);
}

void default_action(int signal, siginfo_t* info, bool sent) {
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    real::sigaction(signal, &standard, nullptr);
    // A true fault happens again when we return; a sent signal has to be sent again.
    if (sent)
        kernel::call(SYS_rt_tgsigqueueinfo, kernel::getpid(), kernel::gettid(), signal,
                     kernel::address(info));
}

void on_fault(int signal, siginfo_t* info, void* context) {
    const int index = index_of(signal);
    // What will not happen again when the instruction is tried again: a signal that was sent, or a
    // broken page of memory that was not touched yet.
    const bool sent = info->si_code <= 0 || (signal == SIGBUS && info->si_code == BUS_MCEERR_AO);
    auto* interrupted = static_cast<ucontext_t*>(context);
    if (!sent) {
        if (const uintptr_t next = safe_read::recovery(arch::pc_of(*interrupted)); next != 0) {
            arch::set_pc(interrupted, next);
            return;
        }
    }
    const struct sigaction action = program_action(index);
    if (!is_function(action)) {
        if (action.sa_handler == SIG_IGN && sent) return;
        default_action(signal, info, sent);
        return;
    }
    if ((action.sa_flags & SA_RESETHAND) != 0) {
        struct sigaction standard;
        memset(&standard, 0, sizeof standard);
        standard.sa_handler = SIG_DFL;
        publish(index, standard);
    }
    if ((action.sa_flags & SA_SIGINFO) != 0)
        action.sa_sigaction(signal, info, context);
    else
        action.sa_handler(signal);
}

}  // namespace

void install() {
    g.pid = kernel::getpid();
    for (const int signal : {SIGSEGV, SIGBUS}) {
        struct sigaction before;
        real::sigaction(signal, nullptr, &before);
        publish(index_of(signal), before);
        put_front(signal, before);
    }
    g.installed.store(true, std::memory_order_release);
    g.trusted.store(true, std::memory_order_release);
}

void remove() {
    if (sandbox::entered() || !g.installed.exchange(false)) return;
    g.trusted.store(false, std::memory_order_release);
    for (const int signal : {SIGSEGV, SIGBUS}) {
        struct sigaction now;
        // One that came behind our back stays.
        if (real::sigaction(signal, nullptr, &now) == 0 && now.sa_sigaction == on_fault)
            real::sigaction(signal, &program_action(index_of(signal)), nullptr);
    }
}

bool fronts(int signal) {
    return index_of(signal) >= 0 && g.installed.load(std::memory_order_acquire);
}

int set_program_action(int signal, const struct sigaction* action, struct sigaction* old) {
    // A vfork child has our memory, but actions of its own.
    if (!sandbox::entered() && kernel::getpid() != g.pid)
        return real::sigaction(signal, action, old);
    const int index = index_of(signal);
    struct sigaction wanted;
    if (action) wanted = *action;  // before `old` is written: they may be the same object
    if (old) *old = program_action(index);
    if (!action) return 0;
    publish(index, wanted);
    put_front(signal, wanted);
    return 0;
}

bool verify() {
    bool ours = g.installed.load(std::memory_order_acquire);
    for (const int signal : {SIGSEGV, SIGBUS}) {
        struct sigaction now;
        if (real::sigaction(signal, nullptr, &now) != 0 || now.sa_sigaction != on_fault)
            ours = false;
    }
    g.trusted.store(ours, std::memory_order_release);
    return ours;
}

bool gets_through([[maybe_unused]] const ucontext_t* interrupted) {
#if defined(__SANITIZE_THREAD__)
    return false;  // it calls handlers late, with all signals blocked, and the context does not say
                   // so
#else
    return trusted() && !sigismember(&interrupted->uc_sigmask, SIGSEGV) &&
           !sigismember(&interrupted->uc_sigmask, SIGBUS);
#endif
}

bool trusted() { return g.trusted.load(std::memory_order_acquire); }

}  // namespace tachograph::fault
