// The sampling signal in the program's signal masks. It is never blocked: a thread that blocks all
// signals is sampled like any other, and sigwait, signalfd and sigpending never see it. Asked for
// its mask, the thread gets its own, and so do the threads and programs that it starts.
#pragma once

#include <pthread.h>
#include <csignal>

namespace tachograph::signal_mask {

// As `real` changes the mask: pthread_sigmask or sigprocmask.
int change(int (*real)(int, const sigset_t*, sigset_t*), int how, const sigset_t* set,
           sigset_t* old);

// Whether a thread that the calling one makes begins with the signal blocked, as far as the program
// knows.
bool passes_on(const pthread_attr_t* attributes);
// In a new thread: what its creator passed on.
void inherit(bool passed);
// The calling thread is about to be sampled.
void unblock();

// A program that is started meanwhile inherits the mask that the program has set.
class AsSet {
  public:
    AsSet();
    ~AsSet();
    AsSet(const AsSet&) = delete;
    AsSet& operator=(const AsSet&) = delete;

  private:
    int blocked_ = 0;
};

}  // namespace tachograph::signal_mask
