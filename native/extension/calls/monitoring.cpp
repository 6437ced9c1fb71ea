// Events of CPython 3.12 and later: sys.monitoring, with two tool identifiers.
//
// One looks for functions: each code object tells of its first call, and is disabled there. The
// other has local events on the functions that are watched, and so can be taken from a function and
// given to it again; what one tool has disabled globally comes back for all tools together only.
#include "calls/events.h"

#include <pybind11/pybind11.h>
#include <initializer_list>
#include <iterator>

namespace py = pybind11;

namespace tachograph::calls {
namespace {

// 0 to 2 and 5 are meant for debuggers, coverage, profilers and optimizers.
constexpr int kIdentifiers[] = {4, 3};
constexpr char kName[] = "tachograph";

// References are held for good.
struct State {
    PyObject* disable = nullptr;
    PyObject* set_local_events = nullptr;
    PyObject* set_events = nullptr;
    PyObject* free_tool_id = nullptr;
    PyObject* finder = nullptr;  // tool identifiers
    PyObject* watcher = nullptr;
    PyObject* local = nullptr;  // events of a function that is watched
    PyObject* none = nullptr;   // no events
    PyObject* first = nullptr;  // the beginning of a function
    PyObject* register_callback = nullptr;
    // Events of exceptions, and what is told of them.
    PyObject* exceptions[2] = {};
    PyObject* exception_callbacks[2] = {};
};
State g;

using Event = Further (*)(void* code, const void* frame);

template <Event event>
PyObject* on_event(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (count < 1 || !PyCode_Check(arguments[0])) Py_RETURN_NONE;
    const bool unwanted = event(arguments[0], tg_own_frame()) == Further::unwanted;
    if (unwanted) declined();
    return Py_NewRef(unwanted ? g.disable : Py_None);
}

// Events that cannot be disabled.
template <Event event>
PyObject* on_rare_event(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (count >= 1 && PyCode_Check(arguments[0])) event(arguments[0], tg_own_frame());
    Py_RETURN_NONE;
}

using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
PyMethodDef method(const char* name, Fast function) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
            METH_FASTCALL, nullptr};
}

PyMethodDef g_methods[] = {
    method("discovered", on_event<discovered>), method("started", on_event<started>),
    method("resumed", on_event<resumed>),       method("suspended", on_event<suspended>),
    method("ended", on_event<ended>),           method("thrown", on_rare_event<thrown>),
    method("unwound", on_rare_event<unwound>),
};

void set_local(void* code, PyObject* events) {
    PyObject* arguments[] = {g.watcher, static_cast<PyObject*>(code), events};
    PyObject* result =
        PyObject_Vectorcall(g.set_local_events, arguments, std::size(arguments), nullptr);
    if (result)
        Py_DECREF(result);
    else
        PyErr_Clear();  // the function is then not watched: none of its calls is seen
}

PyObject* held(const py::object& owner, const char* name) {
    return py::object(owner.attr(name)).release().ptr();
}

// Keeps the identifier if it is free.
PyObject* take_identifier(const py::object& monitoring, int identifier) {
    if (!monitoring.attr("get_tool")(identifier).is_none()) return nullptr;
    monitoring.attr("use_tool_id")(identifier, kName);
    return py::int_(identifier).release().ptr();
}

void register_callbacks(const py::object& monitoring) {
    const struct {
        PyObject* tool;
        const char* event;
        PyMethodDef* method;
    } callbacks[] = {
        {g.finder, "PY_START", &g_methods[0]},   {g.watcher, "PY_START", &g_methods[1]},
        {g.watcher, "PY_RESUME", &g_methods[2]}, {g.watcher, "PY_YIELD", &g_methods[3]},
        {g.watcher, "PY_RETURN", &g_methods[4]}, {g.watcher, "PY_THROW", &g_methods[5]},
        {g.watcher, "PY_UNWIND", &g_methods[6]},
    };
    const py::object events = monitoring.attr("events");
    for (const auto& each : callbacks) {
        const auto function =
            py::reinterpret_steal<py::object>(PyCFunction_NewEx(each.method, nullptr, nullptr));
        if (!function) throw py::error_already_set();
        const py::object event = events.attr(each.event);
        monitoring.attr("register_callback")(py::handle(each.tool), event, function);
        const int of_exceptions = each.method == &g_methods[5]   ? 0
                                  : each.method == &g_methods[6] ? 1
                                                                 : -1;
        if (of_exceptions < 0) continue;
        g.exceptions[of_exceptions] = py::object(event).release().ptr();
        g.exception_callbacks[of_exceptions] = py::object(function).release().ptr();
    }
}

void set_up() {
    const py::object monitoring = py::module_::import("sys").attr("monitoring");
    g.finder = take_identifier(monitoring, kIdentifiers[0]);
    g.watcher = take_identifier(monitoring, kIdentifiers[1]);
    g.free_tool_id = held(monitoring, "free_tool_id");
    if (!g.finder || !g.watcher) return;
    g.disable = held(monitoring, "DISABLE");
    g.register_callback = held(monitoring, "register_callback");
    g.set_local_events = held(monitoring, "set_local_events");
    g.set_events = held(monitoring, "set_events");
    g.none = py::int_(0).release().ptr();
    const py::object events = monitoring.attr("events");
    g.local = (events.attr("PY_START") | events.attr("PY_RESUME") | events.attr("PY_YIELD") |
               events.attr("PY_RETURN"))
                  .release()
                  .ptr();
    register_callbacks(monitoring);
    g.first = held(events, "PY_START");
    monitoring.attr("set_events")(py::handle(g.watcher),
                                  events.attr("PY_UNWIND") | events.attr("PY_THROW"));
}

void give_back() {
    for (PyObject* tool : {g.finder, g.watcher}) {
        if (!tool) continue;
        if (g.set_events) py::handle(g.set_events)(py::handle(tool), 0);
        py::handle(g.free_tool_id)(py::handle(tool));
    }
    g.finder = g.watcher = nullptr;
}

// Runs what raises Python's exceptions; none is left behind.
template <typename F>
bool quietly(F function) {
    const py::error_scope keep;
    try {
        function();
        return true;
    } catch (py::error_already_set&) {
        return false;
    }
}

// A function that is called while none is looked for is found later: it was not disabled.
void find(bool yes) {
    PyObject* arguments[] = {g.finder, yes ? g.first : g.none};
    PyObject* result = PyObject_Vectorcall(g.set_events, arguments, std::size(arguments), nullptr);
    if (result)
        Py_DECREF(result);
    else
        PyErr_Clear();  // another tool has taken the identifier: no further functions are found
}

// Without a callback such an event is nearly free; to take the event itself away would have all
// code looked through. The callbacks are held: one of them may be what is running.
void tell_exceptions(bool yes) {
    for (size_t i = 0; i < std::size(g.exceptions); ++i) {
        PyObject* arguments[] = {g.watcher, g.exceptions[i],
                                 yes ? g.exception_callbacks[i] : Py_None};
        PyObject* result =
            PyObject_Vectorcall(g.register_callback, arguments, std::size(arguments), nullptr);
        if (result)
            Py_DECREF(result);
        else
            PyErr_Clear();  // another tool has taken the identifier
    }
}

bool begin_monitoring() {
    const bool done = quietly(set_up) && g.finder && g.watcher;
    if (!done) quietly(give_back);
    return done;
}

constexpr Events kEvents = {
    .selective = true,
    .begin = begin_monitoring,
    .end = [] { quietly(give_back); },
    .find = find,
    .exceptions = tell_exceptions,
    .watch = [](void* code) { set_local(code, g.local); },
    .unwatch = [](void* code) { set_local(code, g.none); },
};

}  // namespace

const Events* monitoring_events() { return tg_has_monitoring ? &kEvents : nullptr; }

}  // namespace tachograph::calls
