#include "process/native_only.h"

#include "base/kernel.h"
#include "memory/heap.h"
#include "process/lifecycle.h"
#include "spool/layout.h"
#include "spool/process_metadata.h"
#include "spool/settings.h"
#include "spool/spool.h"
#include "stacks/recorder.h"

#include <cstdio>
#include <cstring>

namespace tachograph::native_only {
namespace {

using python::Object;

// CPython's PyMethodDef.
struct Method {
    const char* name;
    python::Function function;
    int flags;
    const char* text;
};
constexpr int kNoArguments = 0x0004;
constexpr int kOneArgument = 0x0008;

struct State {
    python::Api python;
    Object forking = nullptr;  // the main thread's frame that calls os.fork; never looked into
};
constinit State g;

// The interpreter counts the process's threads in a fork of its own, and warns if there are
// several: the helper comes back when it is through.
__thread bool t_interpreter_forks __attribute__((tls_model("initial-exec"))) = false;

void not_read(tg_walk* out) { out->state = TG_STACK_UNSEEN; }

constexpr tg_walker kWalker{
    .walk_self = not_read,
    .walk_other = [](pid_t, void**, int (*)(void*), void*, tg_walk* out) { not_read(out); },
    .is_gil = [](const void*, const void*) { return 0; },
    .position = [](tg_position*) { return 0; },
    .thread_name = [](char*, size_t) -> size_t { return 0; },
    .after_fork =
        [] {
            if (!t_interpreter_forks) lifecycle::restart_helper();
        },
    .in_forked_child = [] { return 0; },
    .evaluation_loop = nullptr,
    .calls_turn = nullptr,
    .calls_sampled = nullptr,
    .calls_flush = nullptr,
    .progress = [] { return uint64_t{0}; },
    .is_header = [](uint64_t, uint64_t) { return 0; },
    .census = nullptr,
    .counts_threads = 1,  // of an interpreter that we know nothing of
};

void tell(const char* line, size_t length) {
    char fact[1024];
    if (length >= sizeof fact) return;
    memcpy(fact, line, length);
    fact[length] = 0;
    char* sign = strchr(fact, '=');
    if (!sign) return;
    *sign = 0;
    process_metadata::tell(fact, sign + 1);
}

bool start() {
    tg_options options = settings::options();
    options.redundancy = 0;
    char error[512] = {};
    if (lifecycle::arm(options, kWalker, error, sizeof error) != 0) return false;
    spool::count(Loss::interpreter_unsupported);
    // Blocks of the interpreter's own allocators are in what it has mapped.
    if (options.memory != 0) heap::begin(0, true);
    return true;
}

Object record_natively(Object, Object facts) {
    const char* text = g.python.utf8(facts);
    if (!text) return nullptr;
    const bool started = start();
    for (const char* line = text; started && *line;) {
        const size_t length = strcspn(line, "\n");
        tell(line, length);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    return g.python.from_long(started ? 1 : 0);
}

// Whether the main thread is still in a call that the forking frame makes: a function of
// register_at_fork.
bool in_a_call_of_the_forking_frame() {
    Object frame = g.python.frame();
    if (frame == g.forking) return false;
    bool held = false;
    while (frame && frame != g.forking) {
        const Object caller = g.python.back(frame);
        if (held) g.python.release(frame);
        frame = caller;
        held = true;
    }
    if (held) g.python.release(frame);
    return frame != nullptr;
}

int restart_when_fork_has_returned(void*) {
    if (in_a_call_of_the_forking_frame() &&
        g.python.add_pending_call(restart_when_fork_has_returned, nullptr) == 0)
        return 0;
    lifecycle::restart_helper();
    return 0;
}

bool in_main_thread() { return kernel::getpid() == kernel::gettid(); }

Object before_fork(Object, Object) {
    t_interpreter_forks = true;
    if (in_main_thread()) g.forking = g.python.frame();
    return g.python.from_long(0);
}

Object after_fork_in_parent(Object, Object) {
    t_interpreter_forks = false;
    if (!in_main_thread() ||
        g.python.add_pending_call(restart_when_fork_has_returned, nullptr) != 0)
        lifecycle::restart_helper();
    return g.python.from_long(0);
}

Object after_fork_in_child(Object, Object) {
    t_interpreter_forks = false;
    if (lifecycle::arm_again("MainThread", 10) == 0) spool::count(Loss::interpreter_unsupported);
    return g.python.from_long(0);
}

Method g_methods[] = {
    {"record_natively", record_natively, kOneArgument, nullptr},
    {"before_fork", before_fork, kNoArguments, nullptr},
    {"after_fork_in_parent", after_fork_in_parent, kNoArguments, nullptr},
    {"after_fork_in_child", after_fork_in_child, kNoArguments, nullptr},
};

}  // namespace

void offer(const python::Api& python, python::Globals* globals) {
    g.python = python;
    for (Method& method : g_methods)
        globals->set(method.name, python.new_function(&method, nullptr, nullptr));
}

}  // namespace tachograph::native_only
