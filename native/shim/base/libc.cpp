#include "base/libc.h"

namespace tachograph::real {
namespace {

// Filled by the constructor, or by the first call that comes before it.
struct Functions {
    int (*sigaction)(int, const struct sigaction*, struct sigaction*) = nullptr;
    sighandler_t (*signal)(int, sighandler_t) = nullptr;
    int (*pthread_sigmask)(int, const sigset_t*, sigset_t*) = nullptr;
    int (*sigprocmask)(int, const sigset_t*, sigset_t*) = nullptr;
    int (*pthread_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = nullptr;
};
constinit Functions g;

#define TG_REAL(name) next_function(&g.name, #name)

__attribute__((constructor)) void resolve() {
    TG_REAL(sigaction);
    TG_REAL(signal);
    TG_REAL(pthread_sigmask);
    TG_REAL(sigprocmask);
    TG_REAL(pthread_create);
}

}  // namespace

int sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
    return TG_REAL(sigaction)(signal, action, old);
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

}  // namespace tachograph::real
