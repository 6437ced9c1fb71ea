#include "base/libc.h"

#include "base/kernel.h"

#include <atomic>
#include <cstdint>

namespace tachograph::real {
namespace {

// Filled by the constructor, or by the first call that comes before it.
struct Functions {
    int (*sigaction)(int, const struct sigaction*, struct sigaction*) = nullptr;
    sighandler_t (*signal)(int, sighandler_t) = nullptr;
    int (*pthread_sigmask)(int, const sigset_t*, sigset_t*) = nullptr;
    int (*sigprocmask)(int, const sigset_t*, sigset_t*) = nullptr;
    int (*pthread_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = nullptr;
    int (*dlclose)(void*) = nullptr;
};
constinit Functions g;

struct Shield {
    std::atomic<int> signal{0};
    std::atomic<pid_t> pid{0};
    std::atomic<uint64_t> had{0};  // by signal: the program has it in its handler's mask itself
    // Signals that have, or had, handlers on an alternate stack, once all were looked at.
    std::atomic<uint64_t> on_stack{0};
    std::atomic<bool> looked{false};
};
constinit Shield g_shield;

uint64_t bit(int signal) { return uint64_t{1} << (signal - 1); }

bool on_alternate_stack(const struct sigaction& action) {
    return is_function(action) && (action.sa_flags & SA_ONSTACK) != 0;
}

#define TG_REAL(name) next_function(&g.name, #name)

__attribute__((constructor)) void resolve() {
    TG_REAL(sigaction);
    TG_REAL(signal);
    TG_REAL(pthread_sigmask);
    TG_REAL(sigprocmask);
    TG_REAL(pthread_create);
    TG_REAL(dlclose);
}

}  // namespace

int sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
    const int shielded = g_shield.signal.load(std::memory_order_relaxed);
    if (action && signal >= 1 && signal <= 64 && on_alternate_stack(*action))
        g_shield.on_stack.fetch_or(bit(signal), std::memory_order_relaxed);
    // A vfork child has our memory, but actions of its own.
    if (shielded == 0 || shielded == signal || signal < 1 || signal > 64 ||
        kernel::getpid() != g_shield.pid.load(std::memory_order_relaxed))
        return TG_REAL(sigaction)(signal, action, old);
    const uint64_t had = g_shield.had.load(std::memory_order_relaxed) & bit(signal);
    struct sigaction given;
    if (action) {
        given = *action;
        if (on_alternate_stack(given)) sigaddset(&given.sa_mask, shielded);
    }
    const bool has = action && sigismember(&action->sa_mask, shielded) == 1;
    const int result = TG_REAL(sigaction)(signal, action ? &given : nullptr, old);
    if (result != 0) return result;
    if (old && had == 0 && on_alternate_stack(*old)) sigdelset(&old->sa_mask, shielded);
    if (has) g_shield.had.fetch_or(bit(signal), std::memory_order_relaxed);
    if (action && !has) g_shield.had.fetch_and(~bit(signal), std::memory_order_relaxed);
    return result;
}

void shield(int shielded) {
    g_shield.pid.store(kernel::getpid(), std::memory_order_relaxed);
    // A forked child begins with what its parent knew: it need not ask for each signal, twice.
    const bool all = !g_shield.looked.exchange(true, std::memory_order_relaxed);
    for (int signal = 1; signal <= 64; ++signal) {
        if (!all && (g_shield.on_stack.load(std::memory_order_relaxed) & bit(signal)) == 0)
            continue;
        struct sigaction now;  // as the program gave it
        if (real::sigaction(signal, nullptr, &now) != 0 || !on_alternate_stack(now)) continue;
        g_shield.on_stack.fetch_or(bit(signal), std::memory_order_relaxed);
        const bool has = shielded != 0 && sigismember(&now.sa_mask, shielded) == 1;
        if (shielded != 0) sigaddset(&now.sa_mask, shielded);
        TG_REAL(sigaction)(signal, &now, nullptr);
        if (has)
            g_shield.had.fetch_or(bit(signal));
        else
            g_shield.had.fetch_and(~bit(signal));
    }
    g_shield.signal.store(shielded);
}

sighandler_t signal(int number, sighandler_t handler) { return TG_REAL(signal)(number, handler); }

int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
    return TG_REAL(pthread_sigmask)(how, set, old);
}

int sigprocmask(int how, const sigset_t* set, sigset_t* old) {
    return TG_REAL(sigprocmask)(how, set, old);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
    return TG_REAL(pthread_create)(thread, attributes, start, argument);
}

int dlclose(void* handle) { return TG_REAL(dlclose)(handle); }

}  // namespace tachograph::real
