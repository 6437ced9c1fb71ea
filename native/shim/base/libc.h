// The C library's own functions behind the ones that the shim interposes.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <csignal>

namespace tachograph {

// The next function of this name in the order of loading, looked up by the first call that needs it
// and kept in `place`.
template <typename F>
F next_function(F* place, const char* name) {
    if (!*place) *place = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
    return *place;
}

}  // namespace tachograph

namespace tachograph::real {

// Adds the shielded signal to the mask of handlers that run on an alternate stack, which has no
// room for another one's frame; what is told of their masks is what the program gave.
int sigaction(int signal, const struct sigaction* action, struct sigaction* old);
// `shielded`: from now on, and for the handlers that are there; 0: none.
void shield(int shielded);
sighandler_t signal(int number, sighandler_t handler);
int pthread_sigmask(int how, const sigset_t* set, sigset_t* old);
int sigprocmask(int how, const sigset_t* set, sigset_t* old);
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument);
int dlclose(void* handle);

}  // namespace tachograph::real

namespace tachograph {

// Whether the program has a function of its own for a signal.
inline bool is_function(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 ||
           (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

}  // namespace tachograph
