// What an event takes here, with the way into our code: calls of empty functions, watched or
// counted and not.
#include "calls/clock.h"
#include "calls/evaluated_frames.h"
#include "calls/events.h"
#include "calls/watcher.h"

#include <algorithm>

namespace tachograph::calls {
namespace {

constexpr int kMeasuredCalls = 100;
constexpr int kMeasurements = 5;
constexpr int kComparisons = 7;
constexpr char kProgram[] =
    "def called():\n    pass\n"
    "def run():\n    for _ in range(100):\n        called()\n"
    "def run_amid(words=[str(i) * (i % 7 + 1) for i in range(25)]):\n"
    "    table = {}\n"
    "    for word in words:\n"
    "        called()\n"
    "        parts = word.split('3')\n"
    "        if word.startswith('1'):\n            table[word] = table.get(word, 0) + 1\n"
    "        called()\n"
    "        ''.join(reversed(parts))\n"
    "        called()\n"
    "        f'{word}{len(parts)}'\n"
    "        called()\n"
    "        sorted(parts)\n"
    "def taking(x):\n    pass\n"
    "def run_by_c():\n    for _ in map(taking, range(100)):\n        pass\n"
    "def made():\n    for x in range(100):\n        yield x\n"
    "def run_generator():\n    for _ in made():\n        pass\n"
    "def unpacked(arguments=()):\n    for _ in range(100):\n        called(*arguments)\n"
    "class Thing:\n"
    "    def __init__(self):\n        pass\n"
    "    @property\n    def read(self):\n        pass\n"
    "    def __getitem__(self, at):\n        pass\n"
    "def create():\n    for _ in range(100):\n        Thing()\n"
    "def read(thing=Thing()):\n    for _ in range(100):\n        thing.read\n"
    "def subscript(thing=Thing()):\n    for _ in range(100):\n        thing[0]\n"
    "async def awaited():\n    pass\n"
    "async def awaiting():\n    for _ in range(100):\n        await awaited()\n"
    "def run_await(coroutine=None):\n"
    "    try:\n        (coroutine or awaiting()).send(None)\n"
    "    except StopIteration:\n        pass\n"
    "class Pause:\n"
    "    def __await__(self):\n        for _ in range(100):\n            yield\n"
    "async def suspended():\n    await Pause()\n"
    "async def lasting():\n    await suspended()\n"
    "def run_resumed():\n"
    "    coroutine = lasting()\n"
    "    for _ in range(100):\n        coroutine.send(None)\n"
    "    run_await(coroutine)\n";  // to its end: else an exception would end it

// What each runs, by the way in which frames come to be evaluated, and in which ways it comes to
// evaluate others with each.
constexpr struct {
    const char* run;
    tg_way others[2] = {TG_WAYS, TG_WAYS};
} kRuns[TG_WAYS] = {
    {"run"},
    {"run_by_c"},
    {"run_generator"},
    {"unpacked"},
    {"create"},
    {"read"},
    {"subscript"},
#if PY_VERSION_HEX >= 0x030C0000
    {"run_await", {TG_BY_BYTECODE, TG_WAYS}},  // to make it
    {"run_resumed", {TG_BY_C, TG_GENERATOR_BY_BYTECODE}},
#endif
};

// The time of a call; 0 if it cannot be measured.
double time_run(PyObject* run) {
    const int64_t begun = now();
    PyObject* result = PyObject_CallNoArgs(run);
    const auto took = static_cast<double>(now() - begun);
    if (!result) {
        PyErr_Clear();
        return 0;
    }
    Py_DECREF(result);
    return took / kMeasuredCalls;
}

// The least of some runs.
double measure_run(PyObject* run) {
    double best = 0;
    for (int i = 0; i < kMeasurements; ++i) {
        const double took = time_run(run);
        best = i == 0 ? took : std::min(best, took);
    }
    return best;
}

void measure(PyObject* run, PyObject* called) {
    const double bare = measure_run(run);
    const int64_t time = now();
    watcher.watching = true;
    watcher.next_round_ns.store(INT64_MAX);
    watcher.updated_ns = time + 60'000'000'000;
    watcher.budget.lift();
    if (!watcher.events->selective) {
        watcher.windows.first = false;
        measure_windows(WindowState::timing);
        open_window(moment(time));
    }
    PyObject* code = PyFunction_GetCode(called);
    if (Function* function = learn(code, nullptr, time)) {
        if (watcher.events->selective) {
            open(function, moment(time), {0, true}, 0);
            watcher.events->watch(code);
        }
        function->quota = function->steps = UINT64_MAX;
        function->interval.begin(moment(time), 0, true, 0, 0);
        watcher.budget.learn_event((measure_run(run) - bare) / 2);
        if (watcher.events->selective) watcher.events->unwatch(code);
    }
    if (!watcher.events->selective) {
        shut_window(moment(now()));
        measure_windows(WindowState::none);
    }
    watcher.watching = false;
}

double measure_clock() {
    const int64_t begun = now();
    int64_t ended = begun;
    for (int i = 0; i < kMeasuredCalls; ++i) ended = now();
    return static_cast<double>(ended - begun) / kMeasuredCalls;
}

// Nothing was called before watching began.
void forget_functions() {
    for (size_t at = 0; at < watcher.functions.high(); ++at) {
        Function* function = watcher.functions.at(at);
        if (!function->code) continue;
        if (function->state != Watch::open) --watcher.not_open;
        tg_set_code_extra(const_cast<void*>(function->code), watcher.extra, nullptr);
        watcher.functions.remove(function);
    }
}

double middle(double (&values)[kComparisons]) {
    std::nth_element(values, values + kComparisons / 2, values + kComparisons);
    return values[kComparisons / 2];
}

// After the interpreter has learned how calls are made now.
double time_learned(PyObject* run) {
    time_run(run);
    return time_run(run);
}

double time_counted(PyObject* run, tg_way way) {
    watcher.watching = true;
    watcher.budget.lift();
    begin_counting(moment(now()), false);
    measure_windows(WindowState::counting, way);
    const double counted = time_learned(run);
    end_counting(moment(now()));
    measure_windows(WindowState::none);
    watcher.watching = false;
    return counted;
}

// How many times as long as the piece of code an event takes: the middle one of some comparisons,
// each of which is short, since other programs on the same core come and go.
// `piece` is how long that takes, `between` how many times as long the program's own code between
// two events.
double compare_event(PyObject* run, tg_way way, double* piece, double* between) {
    double events[kComparisons];
    double pieces[kComparisons];
    double bare[kComparisons];
    time_run(run);
    for (int i = 0; i < kComparisons; ++i) {
        const double before = time_learned(run);
        pieces[i] = measure_piece();
        const double counted = time_counted(run, way);
        const double after = time_learned(run);
        bare[i] = (before + after) / 2 / pieces[i];
        events[i] = (counted - (before + after) / 2) / pieces[i];
    }
    *piece = middle(pieces);
    *between = middle(bare);
    return middle(events);
}

// Events in a loop that does nothing else, and amid other work of the interpreter.
void measure_surroundings(PyObject* amid, double alone, double between_alone) {
    Surroundings& surroundings = watcher.counting.cost.surroundings;
    double piece = 0;
    double between = 0;
    const double event = compare_event(amid, TG_BY_BYTECODE, &piece, &between);
    surroundings.factor = std::clamp(event / alone, 1.0, 4.0);
    surroundings.alone = between_alone / alone + 1;
    surroundings.amid = between / alone + surroundings.factor;
}

void measure_counting(PyObject* names) {
    CountingCost& cost = watcher.counting.cost;
    cost.look = measure_clock();
    const uint64_t begun_ticks = ticks();
    const int64_t begun_ns = now();
    for (int way = 0; way < TG_WAYS && kRuns[way].run; ++way) {
        PyObject* run = PyDict_GetItemString(names, kRuns[way].run);
        if (!run) return;
        double piece = 0;
        double between = 0;
        const double event = compare_event(run, static_cast<tg_way>(way), &piece, &between);
        if (way == TG_BY_BYTECODE) {
            cost.piece = piece;
            PyObject* amid = PyDict_GetItemString(names, "run_amid");
            if (amid && event > 0) measure_surroundings(amid, event, between);
        }
        // As if the processor had been as busy as in the first measurement.
        double took = event * cost.piece;
        for (const tg_way other : kRuns[way].others)
            if (other != TG_WAYS) took -= cost.event[other];
        cost.event[way] = std::max(took, 1.0);
    }
    watcher.counting.slowed = watcher.counting.usual = 1;
    const int64_t passed = now() - begun_ns;
    cost.ticks_by_ns = static_cast<double>(ticks() - begun_ticks) / static_cast<double>(passed);
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
    if (run && watcher.counting.possible) {
        measure_counting(names);
        watcher.counting.writes.prepare();
    }
    forget_functions();
    PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(code);
    Py_XDECREF(names);
}

}  // namespace tachograph::calls
