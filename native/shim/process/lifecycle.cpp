#include "process/lifecycle.h"

#include "base/digits.h"
#include "base/fault.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "cpu/sampler.h"
#include "cpu/timers.h"
#include "hooks/sandbox.h"
#include "memory/heap.h"
#include "memory/mappings.h"
#include "process/helper.h"
#include "spool/layout.h"
#include "spool/own_memory.h"
#include "spool/process_log.h"
#include "spool/process_metadata.h"
#include "spool/settings.h"
#include "spool/spool.h"
#include "stacks/contexts.h"
#include "stacks/modules.h"
#include "stacks/recorder.h"
#include "stacks/threads.h"
#include "waits/blocked.h"
#include "waits/waits.h"

#include <fcntl.h>
#include <pthread.h>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tachograph {
namespace {

// Unknown threads of one look at /proc/self/task. One that is still unknown at the next look did
// not come through pthread_create; before that it may just be on its way.
struct Sweep {
    pid_t tids[256] = {};
    uint32_t count = 0;

    void add(pid_t tid) {
        if (count < sizeof tids / sizeof tids[0]) tids[count++] = tid;
    }
    bool has(pid_t tid) const {
        for (uint32_t i = 0; i < count; ++i)
            if (tids[i] == tid) return true;
        return false;
    }
};

struct State {
    Recorder recorder;
    pid_t pid = 0;
    bool armed = false;
    bool hooked = false;  // the thread key and the fork handlers are there; they stay
    bool children = false;
    bool memory = false;
    bool forked = false;  // from a process that was recorded, and not armed anew
    char directory[512] = {};
    uint64_t segment_size = 0;
    pthread_key_t thread_key{};
    Sweep last_sweep;
};
constinit State g;

void write_state(StateEvent event, uint32_t detail = 0) {
    const spool::Ticket ticket = spool::reserve(Kind::state, sizeof(StateRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<StateRecord*>(ticket.record);
    record->time_ns = kernel::monotonic_ns();
    record->event = static_cast<uint32_t>(event);
    record->detail = detail;
    spool::commit(ticket);
}

void disarm_all() {
    for (uint32_t index = 0; index < threads::high_water(); ++index)
        if (threads::Thread* thread = threads::at(index);
            thread->tid.load(std::memory_order_acquire) > 0)
            timers::disarm(thread);
}

void on_thread_exit(void* value) {
    auto* thread = static_cast<threads::Thread*>(value);
    if (recording() && threads::own() == thread)
        threads::end(thread, kernel::gettid(), kernel::monotonic_ns());
    threads::set_own(nullptr);
    heap::detach();
}

void before_fork() {
    if (!g.armed) return;
    if (recording()) helper::stop();
    mappings::before_fork();
}

void after_fork_in_parent() {
    if (!g.armed) return;
    mappings::after_fork(false);
    if (!recording()) return;
    write_state(StateEvent::forked);
    if (!g.children) spool::count(Loss::forks_unrecorded);
    // Not started again here: CPython may be about to count the threads.
    g.recorder.walker.after_fork();
}

void after_fork_in_child() {
    if (!g.armed) return;
    mappings::after_fork(true);
    if (g.recorder.recording.exchange(false)) g.forked = true;
    threads::set_own(nullptr);
    timers::remove();
    fault::remove();
}

// The last rows of everything; the time of the end. The helper does not work any more, or calls it.
int64_t close_books() {
    heap::finish();
    own_memory::look();
    const int64_t now = kernel::monotonic_ns();
    for (uint32_t index = 0; index < threads::high_water(); ++index) {
        threads::Thread* thread = threads::at(index);
        threads::end(thread, thread->tid.load(std::memory_order_acquire), now);
    }
    g.recorder.recording.store(false);
    return now;
}

// Runs after atexit handlers, but before the destructors of all libraries that the program loaded:
// a preloaded library is initialised after the others that come with the program, and so ends
// first.
__attribute__((destructor)) void on_exit() { lifecycle::finish(); }

void write_ended() {
    const int64_t now = close_books();
    Control* control = spool::control();
    control->end_ns = now;
    __atomic_store_n(&control->state, static_cast<uint32_t>(ControlState::ended), __ATOMIC_RELEASE);
}

void write_stopped(int error) {
    Control* control = spool::control();
    control->stop_errno = static_cast<uint32_t>(error);
    control->end_ns = kernel::monotonic_ns();
    spool::count(Loss::recording_stopped);
    __atomic_store_n(&control->state, static_cast<uint32_t>(ControlState::stopped),
                     __ATOMIC_RELEASE);
}

// The wait sampler sees to it where there is one.
void end_threads_that_are_gone() {
    const int64_t now = kernel::monotonic_ns();
    for (uint32_t index = 0; index < threads::high_water(); ++index) {
        threads::Thread* thread = threads::at(index);
        const pid_t tid = thread->tid.load(std::memory_order_acquire);
        if (tid > 0 && kernel::clock_ns(kernel::thread_clock(tid)) < 0)
            threads::end(thread, tid, now);
    }
}

// Once per process: neither can be taken back, and both do nothing while nothing is recorded.
int hook() {
    if (g.hooked) return 0;
    if (const int failed = pthread_key_create(&g.thread_key, on_thread_exit); failed != 0)
        return failed;
    if (const int failed = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        failed != 0) {
        pthread_key_delete(g.thread_key);
        return failed;
    }
    g.hooked = true;
    return 0;
}

// The process has a spool: from here on it is recorded, its calling thread first. 0 or an errno.
int start(const char* name, size_t length) {
    spool::control()->paused = g.recorder.paused.load() ? 1 : 0;
    if (const int failed = timers::install(); failed != 0) {
        write_stopped(failed);
        return failed;
    }
    fault::install();
    g.recorder.recording.store(true, std::memory_order_release);
    lifecycle::begin_thread(name, length);
    return 0;
}

void start_helper() {
    if (helper::start()) return;
    spool::count(Loss::helper_refused);
    if (const int error = spool::prepare_second(); error != 0) stop_early(error);
}

// Nothing of what is known is this process's: it is all the parent's, but for the memory.
void forget_parent() {
    helper::forget();
    heap::inherit();
    waits::forget();
    threads::forget();
    contexts::forget();
    modules::forget();
    g.last_sweep = {};
}

bool record_as_child(const char* name, size_t length) {
    process_log::forked();  // before the spool, whose times are compared with it
    if (spool::open(g.directory, g.segment_size, kernel::monotonic_ns(), g.memory) != 0)
        return false;
    if (start(name, length) != 0) return false;
    if (g.recorder.paused.load()) write_state(StateEvent::paused);
    facts::tell_again();
    heap::begin_again();
    start_helper();
    return true;
}

}  // namespace

Recorder& recorder() { return g.recorder; }

void stop_early(int error) {
    if (!g.recorder.recording.exchange(false)) return;
    disarm_all();
    write_stopped(error);
}

namespace lifecycle {

int arm(const tg_options& options, const tg_walker& walker, char* error, size_t error_size) {
    if (g.armed) {
        snprintf(error, error_size, "recording is on already in this process");
        return -1;
    }
    g.recorder.interval_ns = options.interval_ns;
    g.recorder.waits = options.waits != 0;
    g.recorder.paused.store(options.paused != 0);
    g.recorder.walker = walker;
    g.pid = kernel::getpid();
    g.children = options.children != 0;
    g.segment_size = options.segment_size;
    const bool memory = g.memory = options.memory != 0;
    if (!memory) heap::never();
    if (!threads::open() || !contexts::open() ||
        (memory && !heap::open(options.memory_threshold))) {
        snprintf(error, error_size,
                 "no memory for the recorder's tables (a limit on address space?)");
        return -1;
    }
    if (const int failed = hook(); failed != 0) {
        snprintf(error, error_size, "no thread-specific data key or fork handler is left: %s",
                 strerror(failed));
        return -1;
    }
    const size_t length = strlen(options.spool);  // one that is too long is refused below
    if (length < sizeof g.directory) memcpy(g.directory, options.spool, length + 1);
    if (const int failed =
            spool::open(options.spool, options.segment_size, kernel::monotonic_ns(), memory);
        failed != 0) {
        snprintf(error, error_size, "the spool could not be made in %s: %s", options.spool,
                 strerror(failed));
        return -1;
    }
    if (start("MainThread", 10) != 0) {
        snprintf(error, error_size, "no signal is free for sampling");
        return -1;
    }
    g.armed = true;
    sweep_threads(true);
    start_helper();
    return 0;
}

int arm_again(const char* name, size_t length) {
    if (!g.forked || !g.children) return -1;
    g.forked = false;
    g.pid = kernel::getpid();
    Control* parents = spool::leave();
    forget_parent();
    const bool recorded = record_as_child(name, length);
    if (parents) {
        if (!recorded)
            __atomic_fetch_add(&parents->losses[static_cast<uint32_t>(Loss::forks_unrecorded)], 1,
                               __ATOMIC_RELAXED);
        spool::unmap(parents);
    }
    return recorded ? 0 : -1;
}

void finish() {
    if (!recording() || kernel::getpid() != g.pid) return;
    helper::stop();
    if (recording()) write_ended();
}

bool asked_to_stop() {
    return __atomic_load_n(&spool::control()->stop_requested, __ATOMIC_ACQUIRE) != 0;
}

void stop_as_asked() {
    settings::leave();
    disarm_all();
    write_ended();
}

void pause(bool yes) {
    if (!recording() || g.recorder.paused.exchange(yes) == yes) return;
    heap::pause(yes);
    __atomic_store_n(&spool::control()->paused, yes ? 1u : 0u, __ATOMIC_RELEASE);
    write_state(yes ? StateEvent::paused : StateEvent::resumed);
}

void restart_helper() {
    if (recording()) helper::start();
}

void begin_thread(const char* python_name, size_t length) {
    // A process that was made without fork's handlers (a plain clone) shares our segments, but not
    // our count of what is used of them.
    if (kernel::getpid() != g.pid) return;
    const pid_t tid = kernel::gettid();
    threads::Thread* thread = threads::find(tid);  // the sweep may have come first
    const bool swept = thread != nullptr;
    if (!swept) thread = threads::add(tid, tid == g.pid, kernel::monotonic_ns());
    if (!thread) return;
    threads::write_name(thread->id, true, python_name, length);
    threads::set_own(thread);
    heap::attach(static_cast<uint32_t>(thread - threads::at(0)), thread->id);
    pthread_setspecific(g.thread_key, thread);
    if (swept) return;
    sampler::begin(thread);
    timers::arm(thread);
}

void exiting() {
    if (recording()) write_state(StateEvent::exiting);
}

bool before_exec(const char* program) {
    if (sandbox::entered()) return false;
    // One that cannot be started at all is most often just not in this folder of PATH.
    const bool likely = !program || kernel::call(SYS_access, kernel::address(program), X_OK) == 0;
    if (likely) process_log::replaced();
    threads::Thread* own = threads::own();
    if (!recording() || !own || kernel::getpid() != g.pid) return false;
    timers::disarm(own);
    if (likely) heap::tell();
    write_state(StateEvent::exec);
    if (!settings::children())
        __atomic_fetch_add(&spool::control()->losses[static_cast<uint32_t>(Loss::execs)], 1,
                           __ATOMIC_RELAXED);
    return true;
}

void after_failed_exec() {
    if (!settings::children())
        __atomic_fetch_sub(&spool::control()->losses[static_cast<uint32_t>(Loss::execs)], 1,
                           __ATOMIC_RELAXED);
    timers::arm(threads::own());
}

void end_early(int error) {
    if (!recording() || kernel::getpid() != g.pid) return;
    helper::stop();
    if (!recording()) return;
    close_books();
    write_stopped(error);
}

bool before_trace() {
    threads::Thread* own = threads::own();
    if (!recording() || !own || kernel::getpid() != g.pid || own->traced.exchange(true))
        return false;
    timers::disarm(own);
    return true;
}

void after_failed_trace() {
    threads::Thread* own = threads::own();
    if (!recording() || !own || kernel::getpid() != g.pid) return;
    own->traced.store(false);
    timers::arm(own);
}

bool sweep_threads(bool at_once) {
    const long fd = kernel::call(SYS_openat, AT_FDCWD, kernel::address("/proc/self/task"),
                                 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return true;
    uint32_t others = 0;
    bool main = false;
    Sweep now;
    alignas(8) char buffer[4096];
    for (;;) {
        const long got = kernel::call(SYS_getdents64, fd, kernel::address(buffer), sizeof buffer);
        if (got <= 0) break;
        for (long at = 0; at < got;) {
            unsigned short length;
            memcpy(&length, buffer + at + 16, sizeof length);  // struct linux_dirent64
            int64_t name;
            read_decimal(buffer + at + 19, &name);
            const auto tid = static_cast<pid_t>(name);
            at += length;
            if (tid <= 0 || tid == helper::tid()) continue;
            ++others;
            main = main || tid == g.pid;
            if (threads::find(tid)) continue;
            if (!at_once && !g.last_sweep.has(tid)) {
                now.add(tid);
                continue;
            }
            if (threads::Thread* thread = threads::add(tid, tid == g.pid, kernel::monotonic_ns()))
                timers::arm(thread);
        }
    }
    kernel::call(SYS_close, fd);
    g.last_sweep = now;
    if (!g.recorder.waits) end_threads_that_are_gone();
    // The first thread stays in the list until the process is gone.
    return others > (main ? 1 : 0) || (main && !blocked::is_dead(g.pid));
}

}  // namespace lifecycle
}  // namespace tachograph
