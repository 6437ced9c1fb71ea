// The table of the sources of facts: CPU samples, waits, memory, copies.
//
// Each source registers itself, and is started, paused and stopped through the table: a new one is
// a new file. They do not depend on each other, so their order in the table means nothing.
#pragma once

#include <ucontext.h>
#include <cstdint>

struct tg_options;
struct tg_walk;

namespace tachograph {

namespace threads {
struct Thread;
}

// A sample of the calling thread, in the sampling signal's handler.
struct Sample {
    threads::Thread* thread;
    const ucontext_t* context;  // where it was interrupted
    const tg_walk& found;       // its Python stack
    uint32_t native_stack;
    uint8_t native_path;
    bool fault_gets_through;
    int64_t time_ns;
    int64_t cpu_ns;     // that it stands for
    int64_t system_ns;  // the part in the kernel; negative: not known
};

// What a source does not need stays empty.
struct Source {
    const char* name;

    // Makes its tables, or learns from the options that it is not wanted. False: no memory.
    bool (*prepare)(const tg_options& options) = nullptr;
    // The process has a spool, and is recorded from now on. 0 or an errno.
    int (*start)() = nullptr;
    void (*pause)(bool yes) = nullptr;
    // In the sampling signal's handler.
    void (*sampled)(const Sample& sample) = nullptr;
    // The recorder's own thread, every few milliseconds. True if nothing has changed.
    bool (*tick)(int64_t now_ns) = nullptr;
    // Another generation of stacks is about to begin: writes a KEPT record for each that a row may
    // name long after. False if that is not possible now.
    bool (*keep)() = nullptr;
    // A rotation window ends: writes the counters, so that none of it counts in the next one.
    void (*window_ends)() = nullptr;
    // Writes what was counted and not written yet: another program may take this one's place, or
    // the interpreter is about to end (`exiting`: the caller is in no handler, and in no hook).
    void (*flush)(bool exiting) = nullptr;
    // The last rows of a recording that is not cut off.
    void (*finish)() = nullptr;
    // Nothing is recorded any more, whatever the reason, and nothing can be written.
    void (*stop)() = nullptr;
    // The process goes on without being recorded: what was installed in it is taken out.
    void (*uninstall)() = nullptr;
    // CPU ns that its handlers have taken of the program's threads in this process. What its hooks
    // take is unknown: reading a clock takes longer than a hook. What its ticks take is measured
    // by the table.
    int64_t (*cost)() = nullptr;

    // From `watch` to `unwatch` the thread is one of the program's; any thread may say so.
    void (*watch)(threads::Thread* thread) = nullptr;
    void (*unwatch)(threads::Thread* thread) = nullptr;
    // The calling thread has its slot; `known`: another thread has found it before, and watches it.
    void (*enter)(threads::Thread* own, bool known) = nullptr;
    // The calling thread ends.
    void (*leave)(threads::Thread* own) = nullptr;

    void (*before_fork)() = nullptr;
    void (*after_fork)(bool in_child) = nullptr;
    // A forked child is about to be recorded: all that is known is of its parent.
    void (*forget)() = nullptr;
};

// Puts a source into the table, without a constructor: the linker collects them in a section.
#define TG_REGISTER_SOURCE(source)                                  \
    [[maybe_unused]] const ::tachograph::Source* const g_registered \
        __attribute__((section("tg_sources"), used)) = &(source)

// CPU ns that sources have taken in this process.
struct Cost {
    int64_t handlers_ns = 0;  // of the program's threads
    int64_t ticks_ns = 0;     // of the recorder's own
};

// Each calls the same of every source.
namespace sources {

bool prepare(const tg_options& options);
int start();
void pause(bool yes);
void sampled(const Sample& sample);
bool tick(int64_t now_ns);
bool keep();
void window_ends();
void flush(bool exiting);
void finish();
void stop();
void uninstall();
// Of the source with this name, or of all.
Cost cost(const char* name = nullptr);
void watch(threads::Thread* thread);
void unwatch(threads::Thread* thread);
void enter(threads::Thread* own, bool known);
void leave(threads::Thread* own);
void before_fork();
void after_fork(bool in_child);
void forget();

}  // namespace sources
}  // namespace tachograph
