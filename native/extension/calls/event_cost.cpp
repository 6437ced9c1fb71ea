// What an event takes here, with the way into our code: calls of an empty function, watched and
// not.
#include "calls/clock.h"
#include "calls/events.h"
#include "calls/watcher.h"

#include <algorithm>

namespace tachograph::calls {
namespace {

constexpr int kMeasuredCalls = 200;
constexpr int kMeasurements = 5;
constexpr char kProgram[] =
    "def called():\n    pass\n"
    "def run():\n    for _ in range(200):\n        called()\n";

// The least time of a call, of some runs; 0 if it cannot be measured.
double measure_run(PyObject* run) {
    double best = 0;
    for (int i = 0; i < kMeasurements; ++i) {
        const int64_t begun = now();
        PyObject* result = PyObject_CallNoArgs(run);
        const auto took = static_cast<double>(now() - begun);
        if (!result) {
            PyErr_Clear();
            return 0;
        }
        Py_DECREF(result);
        best = i == 0 ? took : std::min(best, took);
    }
    return best / kMeasuredCalls;
}

void measure(PyObject* run, PyObject* called) {
    const double bare = measure_run(run);
    const int64_t time = now();
    watcher.watching = true;
    watcher.next_round_ns.store(INT64_MAX);
    watcher.updated_ns = time + 60'000'000'000;
    watcher.budget.lift();
    if (!watcher.events->selective) open_window(moment(time), 0);
    PyObject* code = PyFunction_GetCode(called);
    if (Function* function = learn(code, nullptr, time)) {
        if (watcher.events->selective) watcher.events->watch(code);
        function->quota = function->steps = UINT64_MAX;
        function->interval.begin(moment(time), 0, true, 0, 0);
        watcher.budget.learn_event((measure_run(run) - bare) / 2);
        if (watcher.events->selective) watcher.events->unwatch(code);
        if (function->state != Watch::open) --watcher.not_open;
        tg_set_code_extra(code, watcher.extra, nullptr);
        watcher.functions.remove(function);
    }
    if (!watcher.events->selective) shut_window(moment(now()));
    watcher.watching = false;
}

}  // namespace

void measure_events() {
    PyObject* names = PyDict_New();
    PyObject* builtins = PyEval_GetBuiltins();
    if (names && builtins) PyDict_SetItemString(names, "__builtins__", builtins);
    PyObject* code = names ? Py_CompileString(kProgram, "<tachograph>", Py_file_input) : nullptr;
    PyObject* done = code ? PyEval_EvalCode(code, names, names) : nullptr;
    PyObject* run = done ? PyDict_GetItemString(names, "run") : nullptr;
    PyObject* called = done ? PyDict_GetItemString(names, "called") : nullptr;
    if (run && called) measure(run, called);
    PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(code);
    Py_XDECREF(names);
}

}  // namespace tachograph::calls
