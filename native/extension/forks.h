// Forks by the interpreter, which counts the process's threads and warns if there are several of
// ours, and by native code, of which the interpreter knows nothing.
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

// In a forked child, before fork returns. True where native code has forked, which the interpreter
// is not told: Hooks::in_child is then called by the main thread when it next runs Python.
bool in_forked_child();

}  // namespace tachograph::forks
