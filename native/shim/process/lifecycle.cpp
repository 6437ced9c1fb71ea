#include "process/lifecycle.h"

#include "base/fault.h"
#include "base/kernel.h"
#include "base/sandbox.h"
#include "base/unforked_ranges.h"
#include "memory/heap.h"
#include "memory/import_tables.h"
#include "process/helper.h"
#include "process/survey.h"
#include "spool/child_ends.h"
#include "spool/layout.h"
#include "spool/process_log.h"
#include "spool/process_metadata.h"
#include "spool/settings.h"
#include "spool/spool.h"
#include "stacks/contexts.h"
#include "stacks/generation_turns.h"
#include "stacks/generations.h"
#include "stacks/modules.h"
#include "stacks/native_path.h"
#include "stacks/paths.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace tachograph {
namespace {

struct State {
    pid_t pid = 0;
    bool armed = false;
    bool hooked = false;  // the thread key and the fork handlers are there; they stay
    bool children = false;
    bool memory = false;
    bool attached = false;  // loaded by the interpreter; there may be several recordings
    bool forked = false;    // from a process that was recorded, and not armed anew
    bool is_forked_child = false;
    bool late = false;   // forked by native code: it is armed when it next runs Python
    bool stuck = false;  // a recording could not be ended whole: there is no other one
    char directory[512] = {};
    uint64_t segment_size = 0;
    pthread_key_t thread_key{};
};
constinit State g;

// The time-out for threads of the program that are in our handlers, and for the helper. They need
// microseconds, but on an overloaded machine a thread may get no processor for seconds; and after a
// time-out the process can never be recorded again.
constexpr int64_t kLeaveNs = 10'000'000'000;
constexpr int64_t kYieldNs = 1'000'000;

void write_state(StateEvent event, uint32_t detail = 0) {
    const spool::Ticket ticket = spool::reserve(Kind::state, sizeof(StateRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<StateRecord*>(ticket.record);
    record->time_ns = kernel::monotonic_ns();
    record->event = static_cast<uint32_t>(event);
    record->detail = detail;
    spool::commit(ticket);
}

// The interpreter has said by now that the thread is joined. What is done here takes longer than
// the thread would have lived, and a signal that all others block is not to find it: it takes none
// from now on.
void take_no_signals() {
    if (sandbox::entered()) return;
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
    kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, kernel::address(&all), 0, _NSIG / 8);
}

void on_thread_exit(void* value) {
    auto* thread = static_cast<threads::Thread*>(value);
    take_no_signals();
    const AtWork at_work;
    if (g.attached && threads::own() != thread) return;  // its slot is of an earlier recording
    sources::leave(thread);                              // before the slot is reused
    if (recording() && threads::own() == thread)
        threads::end(thread, kernel::gettid(), kernel::monotonic_ns());
    threads::set_own(nullptr);
}

void before_fork() {
    if (!g.armed) return;
    // To end it and to begin another one takes longer than many a child runs.
    const bool holds = recorder().walker.counts_threads == 0 && recording() && helper::hold();
    if (recording() && !holds) helper::stop();
    sources::before_fork();
}

void after_fork_in_parent() {
    if (!g.armed) return;
    sources::after_fork(false);
    helper::release();
    if (!recording()) return;
    write_state(StateEvent::forked);
    if (!g.children) spool::count(Loss::forks_unrecorded);
    // The helper is started later: CPython counts the threads after a fork and warns.
    recorder().walker.after_fork();
}

void after_fork_in_child() {
    if (!g.armed) return;
    unforked_ranges::become_holes();
    if (recorder().recording.exchange(false)) {
        g.forked = true;
        g.late = g.children && recorder().walker.in_forked_child() != 0;
    }
    sources::after_fork(true);
    threads::set_own(nullptr);
    fault::remove();
    recorder().at_work.store(0);  // those were other threads of the parent
    helper::forget();
}

// Runs after atexit handlers, but before the destructors of all libraries that the program loaded:
// a preloaded library is initialized after those that the program is linked with, and destructors
// run in reverse order.
__attribute__((destructor)) void on_exit() { lifecycle::finish(); }

// Once per process: neither can be undone. Both do nothing while nothing is recorded.
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

// Starts recording a process that has a spool, with its calling thread. 0 or an errno.
int start(const char* name, size_t length) {
    spool::control()->paused = recorder().paused.load() ? 1 : 0;
    if (const int failed = sources::start(); failed != 0) {
        end_recording(ControlState::stopped_early, failed);
        return failed;
    }
    fault::install();
    recorder().recording.store(true, std::memory_order_release);
    lifecycle::begin_thread(name, length);
    return 0;
}

// Resets all state of the recording that has ended, or of the parent's, except that of memory.
void forget_recording(bool in_child) {
    helper::forget();
    sources::forget();
    threads::forget();
    contexts::forget();
    paths::forget();
    native_path::forget();
    generations::forget();
    generation_turns::forget();
    in_child ? modules::inherit() : modules::forget();
    survey::forget();
}

// Resets what a forked child has inherited.
void forget_parent() {
    kernel::g_fills_mappings.store(false);  // mlockall is not inherited
    kernel::g_is_wiped.store(kernel::g_forks_wipe.load());
    forget_recording(true);
    kernel::g_is_wiped.store(false);
}

// Waits until no thread of the program is in a handler or a hook of ours. False: timed out.
bool wait_for_threads() {
    const int64_t begun = kernel::monotonic_ns();
    while (recorder().at_work.load(std::memory_order_seq_cst) != 0) {
        const int64_t waited = kernel::monotonic_ns() - begun;
        if (waited > kLeaveNs) return false;
        if (waited < kYieldNs) {
            kernel::call(SYS_sched_yield);
        } else {
            const timespec moment = kernel::to_timespec(kYieldNs);
            kernel::call(SYS_nanosleep, kernel::address(&moment), 0);
        }
    }
    return true;
}

bool record_as_child(const char* name, size_t length) {
    process_log::forked();  // before the spool, whose times are compared with it
    if (spool::open(g.directory, g.segment_size, kernel::monotonic_ns(), g.memory) != 0)
        return false;
    if (start(name, length) != 0) return false;
    if (recorder().paused.load()) write_state(StateEvent::paused);
    process_metadata::tell_again();
    if (g.late) survey::look(true, 0);  // it may have made threads
    helper::start(true);
    return true;
}

int begin(const tg_options& options, const tg_walker& walker, char* error, size_t error_size) {
    recorder().interval_ns = options.interval_ns;
    recorder().waits = options.waits != 0;
    recorder().paused.store(options.paused != 0);
    recorder().walker = walker;
    g.pid = kernel::getpid();
    g.children = options.children != 0;
    g.segment_size = static_cast<uint64_t>(options.segment_size);
    g.memory = options.memory != 0;
    recorder().native_depth = static_cast<uint32_t>(options.native_depth);
    paths::open();
    modules::open();
    if (!threads::open() || !contexts::open() || !native_path::open() ||
        !sources::prepare(options)) {
        snprintf(error, error_size,
                 "no memory for the recorder's tables (a limit on address space?)");
        return -1;
    }
    if (const int failed = hook(); failed != 0) {
        snprintf(error, error_size, "no thread-specific data key or fork handler is left: %s",
                 strerror(failed));
        return -1;
    }
    const char* const directory = settings::spool();
    const size_t length = strlen(directory);  // spool::open refuses one that is too long
    if (length < sizeof g.directory) memcpy(g.directory, directory, length + 1);
    if (const int failed = spool::open(directory, g.segment_size, kernel::monotonic_ns(), g.memory);
        failed != 0) {
        snprintf(error, error_size, "the spool could not be made in %s: %s", directory,
                 strerror(failed));
        return -1;
    }
    if (start("MainThread", g.attached ? 0 : 10) != 0) {
        snprintf(error, error_size, "no signal is free for sampling");
        return -1;
    }
    g.armed = true;
    survey::look(true, 0);
    helper::start();
    return 0;
}

// Undoes `begin`, after the recording has ended.
bool leave() {
    heap::end_counting();
    import_tables::detach();
    sources::uninstall();
    fault::remove();
    settings::clear();
    process_log::close();
    process_metadata::forget();
    if (helper::is_there()) helper::stop(kLeaveNs);
    g.stuck = helper::is_there() || !wait_for_threads() || !spool::unmap_all();
    if (!g.stuck) {
        forget_recording(false);
        heap::begin_anew();
    }
    g.armed = false;
    return !g.stuck;
}

}  // namespace

namespace lifecycle {

int arm(const tg_options& options, const tg_walker& walker, char* error, size_t error_size) {
    if (g.armed) {
        snprintf(error, error_size, "recording is on already in this process");
        return -1;
    }
    if (g.stuck || g.forked) {
        snprintf(error, error_size,
                 g.stuck ? "an earlier recording of this process could not be ended"
                         : "this process was forked from one that was being recorded");
        return -1;
    }
    if (const char* key = settings::unusable()) {
        snprintf(error, error_size, "the recording command has set no %s that can be used", key);
        return -1;
    }
    g.attached = settings::are_from_inside();
    if (g.attached) import_tables::attach();
    const int failed = begin(options, walker, error, error_size);
    if (failed != 0 && g.attached) leave();
    if (failed == 0 && !g.attached) import_tables::meet_lookups();
    return failed;
}

int arm_again(const char* name, size_t length) {
    if (!g.forked || !g.children) return -1;
    g.forked = false;
    g.is_forked_child = true;
    g.pid = kernel::getpid();
    Control* parents = spool::unmap_segments_of_parent();
    forget_parent();
    const bool recorded = record_as_child(name, length);
    if (parents) {
        if (!recorded)
            __atomic_fetch_add(&parents->losses[static_cast<uint32_t>(Loss::forks_unrecorded)], 1,
                               __ATOMIC_RELAXED);
        spool::unmap_control_of_parent(parents);
    }
    return recorded ? 0 : -1;
}

void finish() {
    if (!recording() || kernel::getpid() != g.pid) return;
    const bool is_short = helper::call_off();
    if (is_short)
        child_ends::flush();
    else
        helper::stop();
    // Looking at the pages of all tables takes longer than most short children run.
    if (recording())
        end_recording(ControlState::ended, 0,
                      is_short && g.is_forked_child ? modules::refresh_at_end : nullptr);
}

bool disarm(int early) {
    if (!g.armed || !g.attached || kernel::getpid() != g.pid) return true;
    if (early != 0 && recording()) {
        helper::stop();
        if (recording()) end_recording(ControlState::stopped_early, early);
    }
    finish();
    return leave();
}

void pause(bool yes) {
    if (!recording() || kernel::getpid() != g.pid || recorder().paused.exchange(yes) == yes) return;
    sources::pause(yes);
    __atomic_store_n(&spool::control()->paused, yes ? 1u : 0u, __ATOMIC_RELEASE);
    write_state(yes ? StateEvent::paused : StateEvent::resumed);
}

void leave_out(pid_t tid) { survey::leave_out(tid); }

void restart_helper() {
    if (recording()) helper::start();
}

void begin_thread(const char* python_name, size_t length, const threads::Beginning& beginning) {
    // A child of a plain clone(), which runs no fork handlers, shares our segments but has its own
    // copy of their counters: its records would overwrite ours.
    const AtWork at_work;
    if (kernel::getpid() != g.pid || !recording()) return;
    const pid_t tid = kernel::gettid();
    if (tid == survey::left_out()) return;
    threads::Thread* thread = threads::find(tid);  // the survey may have found it first
    const bool swept = thread != nullptr;
    if (!swept) thread = threads::add(tid, tid == g.pid, kernel::monotonic_ns());
    if (!thread) return;
    threads::write_name(thread->id, true, python_name, length);
    if (length > 0) thread->python.store(true, std::memory_order_relaxed);
    threads::set_own(thread);
    threads::set_stack(thread, beginning);
    sources::enter(thread, swept);
    pthread_setspecific(g.thread_key, thread);
    if (!swept) sources::watch(thread);
}

void exiting() {
    if (!recording() || kernel::getpid() != g.pid) return;
    sources::flush(true);
    write_state(StateEvent::exiting);
}

void count_exec(int more) {
    if (recording())
        __atomic_fetch_add(&spool::control()->losses[static_cast<uint32_t>(Loss::execs)],
                           static_cast<uint64_t>(static_cast<int64_t>(more)), __ATOMIC_RELAXED);
}

bool before_exec(const char* program) {
    if (sandbox::entered()) return false;
    // execvp tries each folder of PATH: most failures are just files that are not there.
    const bool likely =
        !program || kernel::call(SYS_faccessat, AT_FDCWD, kernel::address(program), X_OK) == 0;
    if (likely) {
        child_ends::flush();
        process_log::replaced();
    }
    threads::Thread* own = recording() ? threads::current() : nullptr;
    if (!own || kernel::getpid() != g.pid) return false;
    sources::unwatch(own);
    if (likely) sources::flush(false);
    if (likely && helper::borrow()) {
        modules::refresh_at_end();
        helper::give_back();
    }
    write_state(StateEvent::exec);
    if (likely) spool::save(false);
    if (!settings::pass_to_children()) count_exec(1);
    return true;
}

void after_failed_exec() {
    if (!settings::pass_to_children()) count_exec(-1);
    sources::watch(threads::current());
}

void end_early(int error) {
    if (!g.armed || kernel::getpid() != g.pid) return;
    if (recording()) helper::stop();
    if (recording()) end_recording(ControlState::stopped_early, error);
    // Now, because the hooks of signals call getpid while a source is installed.
    sources::uninstall();
}

bool before_lone_call() {
    if (!live()) return false;
    helper::stop();
    return true;
}

void after_lone_call() { restart_helper(); }

void after_change_of_rights() {
    if (live()) helper::start_anew();
}

bool before_trace() {
    threads::Thread* own = recording() ? threads::current() : nullptr;
    if (!own || kernel::getpid() != g.pid || own->traced.exchange(true)) return false;
    sources::unwatch(own);
    return true;
}

void after_failed_trace() {
    threads::Thread* own = recording() ? threads::current() : nullptr;
    if (!own || kernel::getpid() != g.pid) return;
    own->traced.store(false);
    sources::watch(own);
}

}  // namespace lifecycle
}  // namespace tachograph
