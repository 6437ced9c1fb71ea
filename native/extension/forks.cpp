#include "forks.h"

#include "compat.h"

#include <Python.h>

#include <pybind11/pybind11.h>
#include <unistd.h>

namespace py = pybind11;

namespace tachograph::forks {
namespace {

Hooks g_hooks{};

// CPython counts the process's threads right after a fork of its own, and warns if there are
// several: then ours come back when the interpreter is through with the fork. A fork by native code
// counts no threads, and its end is not told: then they come back at once.
thread_local bool t_interpreter_forks = false;

// A child that native code has forked, and in which no Python has run since.
bool g_is_new_child = false;

// The frame of the main thread that has called os.fork, held until our threads are back.
PyFrameObject* g_forking = nullptr;

// Whether the main thread is still in a call that `g_forking` makes: a function of
// register_at_fork.
bool in_a_call_of_the_forking_frame() {
    py::object frame = py::reinterpret_steal<py::object>(
        reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
    const auto is_forking = [](const py::object& one) {
        return one.ptr() == reinterpret_cast<PyObject*>(g_forking);
    };
    if (is_forking(frame)) return false;
    while (frame && !is_forking(frame))
        frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(
            PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(frame.ptr()))));
    return static_cast<bool>(frame);
}

// A pending call: the interpreter makes it where it next looks for signals. That may be in one of
// the functions of register_at_fork; then it is put off.
int come_back_when_fork_has_returned(void*) {
    if (in_a_call_of_the_forking_frame() &&
        Py_AddPendingCall(come_back_when_fork_has_returned, nullptr) == 0)
        return 0;
    Py_CLEAR(g_forking);
    g_hooks.come_back();
    return 0;
}

void before() {
    g_hooks.before();
    if (!g_hooks.has_threads()) return;
    t_interpreter_forks = true;
    if (tg_counts_threads_after_fork_functions && getpid() == gettid())
        Py_XSETREF(g_forking, PyThreadState_GetFrame(PyThreadState_Get()));
}

// Where the threads are counted behind the functions of register_at_fork, ours come back in the
// main thread when os.fork has returned. In another one there are several threads anyway.
void after_in_parent() {
    t_interpreter_forks = false;
    if (getpid() == gettid() && g_forking &&
        Py_AddPendingCall(come_back_when_fork_has_returned, nullptr) == 0)
        return;
    g_hooks.come_back();
}

void after_in_child() {
    t_interpreter_forks = false;
    g_is_new_child = false;
    Py_CLEAR(g_forking);
    g_hooks.in_child();
}

int begin_in_new_child(void*) {
    // The program may have told the interpreter of its fork (PyOS_AfterFork_Child).
    if (g_is_new_child) after_in_child();
    return 0;
}

}  // namespace

void watch(const Hooks& hooks) {
    if (g_hooks.before) return;
    g_hooks = hooks;
    py::module_::import("os").attr("register_at_fork")(
        py::arg("before") = py::cpp_function(before),
        py::arg("after_in_parent") = py::cpp_function(after_in_parent),
        py::arg("after_in_child") = py::cpp_function(after_in_child));
}

bool interpreter_forks() { return t_interpreter_forks; }

bool in_forked_child() {
    if (t_interpreter_forks) return false;
    g_is_new_child = true;
    // Where that fails, the child is not recorded, and its end is known like that of any other.
    tg_add_pending_call_in_child(begin_in_new_child);
    return true;
}

}  // namespace tachograph::forks
