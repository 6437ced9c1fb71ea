// The C library's own functions behind the ones that the shim interposes.
#pragma once

#include <pthread.h>
#include <csignal>

namespace tachograph::real {

int sigaction(int signal, const struct sigaction* action, struct sigaction* old);
int pthread_sigmask(int how, const sigset_t* set, sigset_t* old);
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument);

}  // namespace tachograph::real
