#include "base/trap_signal.h"

#include "base/kernel.h"
#include "base/libc.h"
#include "base/sandbox.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace tachograph::trap_signal {
namespace {

struct State {
    std::atomic<bool> installed{false};
    Handler handler = nullptr;
    void (*taken)() = nullptr;
    void (*blocked)() = nullptr;
    struct sigaction program{};  // ignored or default: what the program reads back
    pid_t pid = 0;
};
constinit State g;

constexpr int kPerf = 6;  // TRAP_PERF
// In siginfo_t, behind the address: the event's sig_data, its type, and flags.
constexpr size_t kData = 24;
constexpr size_t kFlags = 36;
constexpr uint32_t kAsynchronous = 1;

// As it would have been without us. The instruction that trapped is not tried again.
void pass_on(siginfo_t* info) {
    if (g.program.sa_handler == SIG_IGN && info->si_code <= 0) return;
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    real::sigaction(SIGTRAP, &standard, nullptr);
    kernel::call(SYS_rt_tgsigqueueinfo, kernel::getpid(), kernel::gettid(), SIGTRAP,
                 kernel::address(info));
}

void on_trap(int, siginfo_t* info, void* context) {
    const int saved = errno;
    Trap trap;
    if (!g.handler(info, static_cast<ucontext_t*>(context)) && !read(info, &trap)) pass_on(info);
    errno = saved;
}

}  // namespace

bool install(Handler handler, void (*taken)(), void (*blocked)()) {
    struct sigaction before;
    if (real::sigaction(SIGTRAP, nullptr, &before) != 0) return false;
    if (is_function(before) && before.sa_sigaction != on_trap) return false;
    g.handler = handler;
    g.taken = taken;
    g.blocked = blocked;
    if (before.sa_sigaction != on_trap) g.program = before;
    g.pid = kernel::getpid();
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_trap;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&ours.sa_mask);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS})
        sigdelset(&ours.sa_mask, fault);
    if (real::sigaction(SIGTRAP, &ours, nullptr) != 0) return false;
    g.installed.store(true, std::memory_order_release);
    return true;
}

void remove() {
    if (!sandbox::entered() && g.installed.exchange(false))
        real::sigaction(SIGTRAP, &g.program, nullptr);
}

bool fronts(int signal) { return signal == SIGTRAP && g.installed.load(std::memory_order_acquire); }

int set_program_action(int signal, const struct sigaction* action, struct sigaction* old) {
    // A vfork child has our memory, but actions of its own.
    if (!sandbox::entered() && kernel::getpid() != g.pid)
        return real::sigaction(signal, action, old);
    struct sigaction wanted;
    if (action) wanted = *action;  // before `old` is written: they may be the same object
    if (old) *old = g.program;
    if (!action) return 0;
    if (!is_function(wanted)) {
        g.program = wanted;
        return 0;
    }
    g.taken();
    g.installed.store(false, std::memory_order_release);
    return real::sigaction(signal, &wanted, nullptr);
}

bool blocks(int how, const sigset_t* set) {
    return set && g.installed.load(std::memory_order_acquire) && how != SIG_UNBLOCK &&
           sigismember(set, SIGTRAP) == 1;
}

void blocked() { g.blocked(); }

bool verify() {
    struct sigaction now;
    return g.installed.load(std::memory_order_acquire) &&
           real::sigaction(SIGTRAP, nullptr, &now) == 0 && now.sa_sigaction == on_trap;
}

bool read(const siginfo_t* info, Trap* trap) {
    if (info->si_signo != SIGTRAP || info->si_code != kPerf) return false;
    const auto* bytes = reinterpret_cast<const uint8_t*>(info);
    uint32_t flags = 0;
    memcpy(&trap->data, bytes + kData, sizeof trap->data);
    memcpy(&flags, bytes + kFlags, sizeof flags);
    trap->address = reinterpret_cast<unsigned long>(info->si_addr);
    trap->late = (flags & kAsynchronous) != 0;
    return true;
}

}  // namespace tachograph::trap_signal
