// Stands in for interpose.cpp: in these tests nothing is interposed, the sanitizers' runtimes do
// that.
#include "base/libc.h"
#include "hooks/sandbox.h"

namespace tachograph::real {

int sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
    return ::sigaction(signal, action, old);
}

int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
    return ::pthread_sigmask(how, set, old);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
    return ::pthread_create(thread, attributes, start, argument);
}

}  // namespace tachograph::real

bool tachograph::sandbox::entered() { return false; }
