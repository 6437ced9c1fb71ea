// Threads of our own around a fork that the interpreter makes: it counts the process's threads, and
// warns if there are several.
#pragma once

namespace tachograph::forks {

struct Hooks {
    void (*before)();
    bool (*has_threads)();  // whether any is to come back, in the parent
    void (*come_back)();
    void (*in_child)();
};

// From now on; the functions of the first call stay.
void watch(const Hooks& hooks);

// Whether the calling thread is in os.fork. A fork by native code counts no threads.
bool interpreter_forks();

}  // namespace tachograph::forks
