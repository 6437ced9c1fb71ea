// tachograph.recorder._native: what the recorder's Python side can ask of the native one.
#include "calls/evaluated_frames.h"
#include "calls/marked_loop.h"
#include "calls/watching.h"
#include "census.h"
#include "codes.h"
#include "compat.h"
#include "current_span.h"
#include "descriptors.h"
#include "entering.h"
#include "forks.h"
#include "memory.h"
#include "names.h"
#include "orphan.h"
#include "read_clock.h"
#include "referrers.h"
#include "source_lines.h"
#include "standby.h"
#include "symbols.h"
#include "tachograph/api.h"
#include "walker.h"

#include <dlfcn.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <structmember.h>  // PyMemberDef, up to 3.11
#include <unistd.h>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace tachograph {
namespace {

// One per process, made at arming and never freed: handlers use it until the very end.
const tg_api* g_api = nullptr;
const Walker* g_walker = nullptr;
bool g_memory_is_seen = false;
// The shim was loaded by us, and recording is begun and ended from inside.
bool g_attached = false;

const tg_api* find_api() {
    if (!g_api) {
        auto function = reinterpret_cast<tg_api_function>(dlsym(RTLD_DEFAULT, TG_API_SYMBOL));
        if (function && function()->version == TG_API_VERSION) g_api = function();
    }
    return g_api;
}

void after_fork() {
    if (!forks::interpreter_forks()) g_api->restart_helper();
}

constexpr forks::Hooks kForkHooks{
    .before = [] { standby::before_fork(); },
    .has_threads = [] { return (g_api && g_api->active() != 0) || standby::left_for_fork(); },
    .come_back =
        [] {
            if (g_api) g_api->restart_helper();
            standby::come_back();
        },
    .in_child =
        [] {
            if (g_api) {
                const std::string name = name_of_this_thread();
                const bool recorded = g_api->arm_again(name.data(), name.size()) == 0;
                calls::after_fork_in_child(recorded);
            }
            standby::begin_in_child();
        },
};

// A pending call, in the main thread.
int turn_calls(void*) {
    calls::turn();
    return 0;
}

// In the recorder's own thread.
void turn_calls_when_due(int64_t now_ns) {
    if (calls::wants_turn(now_ns) && tg_add_pending_call(turn_calls) != 0) calls::put_off();
}

void flush_calls() {
    int attached = 0;
    if (tg_own_thread_state(&attached) && attached) calls::flush();
}

calls::Options call_options(const tg_options& options) {
    return {options.calls_period_ns, options.calls_budget_percent / 100, options.calls_choice == 0,
            static_cast<uint32_t>(options.calls_top)};
}

// Where the settings say so: what keeps the largest live blocks.
void search_referrers() {
    if (!g_memory_is_seen || g_api->active() == 0 || g_api->options()->referrers == 0) return;
    int attached = 0;
    const auto* tstate = static_cast<const uint8_t*>(tg_own_thread_state(&attached));
    constexpr uint8_t kNotCollecting = 2;
    if (tstate && attached && g_walker->collecting(tstate) == kNotCollecting)
        referrers::search(g_api);
}

// Counts and times calls, if the settings say so and it is possible.
void watch_calls() {
    if (!find_api() || g_api->active() == 0 || g_api->options()->calls == 0) return;
    const tg_options& options = *g_api->options();
    const bool begun = calls::begin(g_api, tg_offsets_of_runtime(), call_options(options));
    if (begun && options.paused != 0) calls::pause(true);
}

// What the walker reads must be what the interpreter says of itself; else this is not an
// interpreter that we know, and we do not touch it.
std::optional<std::string> disagreement(const Walker& walker) {
    int attached = 0;
    const auto* tstate = static_cast<const uint8_t*>(tg_own_thread_state(&attached));
    if (!tstate || !attached) return "the calling thread's state was not found";
    std::vector<RawFrame> frames(1024);
    const auto [count, state, opcode, generators] =
        walker.collect(tstate, frames.data(), frames.size());
    auto frame = py::reinterpret_steal<py::object>(
        reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
    for (size_t i = 0; i < count; ++i) {
        if (!frame) return "the walk found more frames than there are";
        auto* object = reinterpret_cast<PyFrameObject*>(frame.ptr());
        const auto code =
            py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(object)));
        if (reinterpret_cast<const uint8_t*>(code.ptr()) != frames[i].code)
            return "a frame has another code object";
        frame =
            py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(object)));
    }
    if (state == TG_STACK_WHOLE && frame) return "the walk found fewer frames than there are";
    if (state != TG_STACK_WHOLE && state != TG_STACK_TRUNCATED)
        return "the stack could not be walked";
    return std::nullopt;
}

// Loads the shim into this process. What is wrong, if anything is.
std::optional<std::string> load_shim(const std::string& path) {
    if (g_attached) return std::nullopt;
    if (find_api()) return "it was started by 'tachograph record'";
    // Not for others to find: its definitions of malloc and memcpy are not to be met by name. It
    // stays for good, as threads may be about to leave its functions.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return std::string(dlerror());
    const auto function = reinterpret_cast<tg_api_function>(dlsym(library, TG_API_SYMBOL));
    if (!function || function()->version != TG_API_VERSION) return path + " is of another version";
    g_api = function();
    g_attached = true;
    return std::nullopt;
}

// Lets other threads have the interpreter meanwhile. py::gil_scoped_release would end the program
// where the interpreter ends before this thread has it back (tg_restore_thread).
template <typename Work>
auto without_interpreter(Work work) {
    PyThreadState* const state = PyEval_SaveThread();
    auto result = [&] {
        try {
            return work();
        } catch (...) {
            tg_restore_thread(state);
            throw;
        }
    }();
    tg_restore_thread(state);
    return result;
}

const char* enter(const std::string& step, pid_t pid,
                  const std::tuple<uintptr_t, uintptr_t, uintptr_t, uintptr_t, size_t>& where,
                  const std::string& code, const std::string& simple) {
    const auto [runtime, function, text, entry, room] = where;
    const entering::Places places{runtime, function, text, room, entry};
    return without_interpreter([&] {
        if (step == "add") return entering::name(entering::add(pid, places, code, simple));
        if (step == "remind") return entering::name(entering::remind(pid, places));
        return entering::name(entering::take_back(pid, places));
    });
}

// The one recording of this process that was begun from inside, as Python has it.
PyObject* g_recording = nullptr;

bool claim(py::object recording) {
    if (g_recording) return false;
    g_recording = recording.release().ptr();
    return true;
}

bool disarm(int early) {
    if (!g_attached) return true;
    if (g_memory_is_seen && g_api->active() != 0) check_memory(g_api);
    unwatch_memory(g_api);
    g_memory_is_seen = false;
    unwatch_code_deaths();
    // Threads that end meanwhile may want it.
    return without_interpreter([early] { return g_api->disarm(early) == 0; });
}

std::optional<std::string> supported() {
    if (!find_api()) return "libtachograph.so is not preloaded";
    if (!tg_offsets_of_runtime())
        return "this interpreter is not the one that the extension module was built for";
    return std::nullopt;
}

void arm() {
    if (const auto reason = supported()) throw std::runtime_error(*reason);
    const tg_offsets* offsets = tg_offsets_of_runtime();
    tg_find_thread_locals(g_api->read);
    if (!g_walker) {
        auto walker = std::make_unique<Walker>(g_api, offsets, &PyCode_Type);
        if (const auto reason = disagreement(*walker))
            throw std::runtime_error("this interpreter's frames are not laid out as expected: " +
                                     *reason);
        g_walker = walker.release();
    }
    const tg_walker functions{
        .walk_self = [](tg_walk* out) { g_walker->self(out); },
        .walk_other =
            [](pid_t tid, void** hint, int (*stands)(void*), void* context, tg_walk* out) {
                g_walker->other(tid, hint, {stands, context, stands == nullptr}, out);
            },
        .is_gil = [](const void* hint,
                     const void* address) { return g_walker->is_gil(hint, address) ? 1 : 0; },
        .position = [](tg_position* out) { return g_walker->position(out) ? 1 : 0; },
        .thread_name = name_of_starting_thread,
        .after_fork = after_fork,
        .in_forked_child = [] { return forks::in_forked_child() ? 1 : 0; },
        .evaluation_loop = tg_evaluation_loop(),
        .calls_turn = turn_calls_when_due,
        .calls_sampled = calls::open_at_sample,
        .calls_flush = flush_calls,
        .progress = [] { return g_walker->progress(); },
        .is_header = [](uint64_t address,
                        uint64_t size) { return g_walker->is_header(address, size) ? 1 : 0; },
        .census = [](tg_census* out) { take_census(g_api, tg_offsets_of_runtime(), out); },
        .counts_threads = tg_counts_threads,
    };
    standby::leave_out(g_api);
    char error[512] = {};
    if (g_api->arm(&functions, error, sizeof error) != 0) throw std::runtime_error(error);
    watch_code_deaths();  // none can have died since: the GIL was held
    forks::watch(kForkHooks);
    const bool memory = g_api->options()->memory != 0;
    g_memory_is_seen = memory && watch_memory(g_api, !g_attached);
    if (!memory && g_api->options()->redundancy != 0) watch_releases(g_api);
}

}  // namespace
}  // namespace tachograph

PYBIND11_MODULE(_native_of_main_interpreter, module) {
    using namespace tachograph;
    module.doc() = "The native recorder (see recorder/_native.pyi).";
    if (!calls::make_type_of_marked_loops()) throw py::error_already_set();
    module.def("arm", &arm);
    module.def("exiting", [] {
        if (!find_api() || g_api->active() == 0) return;
        if (g_memory_is_seen) check_memory(g_api);
        calls::end();
        g_api->exiting();
        search_referrers();
    });
    module.def("pause", [] {
        if (!find_api()) return;
        calls::pause(true);
        g_api->pause();
    });
    module.def("resume", [] {
        if (!find_api()) return;
        g_api->resume();
        calls::pause(false);
    });
    module.def("monotonic_ns", [] { return now(); });
    module.def("utc_ns", [] { return read_clock(CLOCK_REALTIME); });
    module.def("boot_ns", [] { return read_clock(CLOCK_BOOTTIME); });
    module.def("snapshot", [] {
        if (!find_api()) return false;
        search_referrers();
        return g_api->snapshot() != 0;
    });
    module.def("active", [] { return find_api() && g_api->active() != 0; });
    module.def(
        "meta",
        [](const std::string& key, const std::string& value) {
            if (find_api()) g_api->meta(key.c_str(), value.c_str());
        },
        py::arg("key"), py::arg("value"));
    module.def(
        "span",
        [](const std::string& name, const std::string& fields, int64_t start_ns, int64_t end_ns,
           uint32_t span, uint32_t parent) {
            const tg_span made{name.c_str(), fields.c_str(), start_ns, end_ns, span, parent};
            if (find_api()) g_api->span(&made);
        },
        py::arg("name"), py::arg("fields"), py::arg("start_ns"), py::arg("end_ns"), py::arg("span"),
        py::arg("parent"));
    module.def(
        "follow_spans",
        [](py::handle variable, py::handle type, py::handle number) {
            if (Py_TYPE(number.ptr()) != &PyMemberDescr_Type || !PyType_Check(type.ptr()))
                throw py::type_error("a type and a member of it are wanted");
            const auto* member = reinterpret_cast<PyMemberDescrObject*>(number.ptr())->d_member;
            follow_spans(variable.ptr(), reinterpret_cast<PyTypeObject*>(type.ptr()),
                         static_cast<size_t>(member->offset));
        },
        py::arg("variable"), py::arg("kind"), py::arg("number"));
    module.def("watch_calls", &watch_calls);
    module.def(
        "mark_loop",
        [](py::handle iterable) {
            PyObject* loop = find_api() && g_api->active() != 0 && tg_offsets_of_runtime()
                                 ? calls::mark_loop(g_api, iterable.ptr())
                                 : PyObject_GetIter(iterable.ptr());
            if (!loop) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(loop);
        },
        py::arg("iterable"));
    module.def("supported", &supported);
    module.def("load", &load_shim, py::arg("path"));
    module.def(
        "configure",
        [](const std::string& spool, const std::string& config) {
            return g_attached && g_api->configure(spool.c_str(), config.c_str()) == 0;
        },
        py::arg("spool"), py::arg("config"));
    module.def("disarm", &disarm, py::arg("early") = 0);
    module.def("claim", &claim, py::arg("recording"));
    module.def("claimed", [] {
        return g_recording ? py::reinterpret_borrow<py::object>(g_recording) : py::none();
    });
    module.def("unclaim", [] { Py_CLEAR(g_recording); });
    module.def(
        "name_thread",
        [](int64_t tid, const std::string& name) {
            if (g_attached) g_api->name_thread(static_cast<pid_t>(tid), name.data(), name.size());
        },
        py::arg("tid"), py::arg("name"));
    module.def(
        "stand_by",
        [](py::function answer, bool once) {
            forks::watch(kForkHooks);
            return standby::begin(answer.release().ptr(), once);
        },
        py::arg("answer"), py::arg("once"));
    module.def(
        "is_switch_interval",
        [](double seconds) {
            forks::watch(kForkHooks);
            standby::is_switch_interval(std::lround(seconds * 1e6));
        },
        py::arg("seconds"));
    module.def("own_places", [] {
        const auto places = entering::own_places();
        return places ? py::object(py::make_tuple(places->runtime, places->function, places->text,
                                                  places->code, places->room))
                      : py::none();
    });
    module.def("enter", &enter, py::arg("step"), py::arg("pid"), py::arg("places"), py::arg("code"),
               py::arg("simple"));
    module.def("own_runtime", &entering::own_runtime);
    module.def("has_several_interpreters", &entering::has_several_interpreters, py::arg("pid"),
               py::arg("runtime"));
    module.def(
        "run_in_main",
        [](pid_t pid, uintptr_t runtime, const std::string& path) {
            return without_interpreter(
                [&] { return entering::name(entering::run_in_main(pid, runtime, path)); });
        },
        py::arg("pid"), py::arg("runtime"), py::arg("path"));
    module.def("move_high", &move_high, py::arg("descriptor"));
    module.def("start_orphan", &start_orphan, py::arg("arguments"), py::arg("environment"),
               py::arg("descriptors"));
    module.def(
        "resolve",
        [](const std::string& path, const std::string& debug_path,
           const std::vector<uint64_t>& offsets) {
            std::vector<std::tuple<std::optional<std::string>, std::optional<uint64_t>,
                                   std::optional<uint64_t>>>
                found;
            for (Function& each :
                 without_interpreter([&] { return resolve_symbols(path, debug_path, offsets); }))
                found.emplace_back(std::move(each.name), each.address, each.start);
            return found;
        },
        py::arg("path"), py::arg("debug_path"), py::arg("offsets"));
    module.def(
        "source_lines",
        [](const py::bytes& line, const py::bytes& line_text,
           const std::vector<uint64_t>& addresses, const std::vector<uint64_t>& entries) {
            const DebugSections sections{line, line_text};
            std::vector<std::optional<std::pair<std::string, uint32_t>>> found;
            for (auto& each : without_interpreter(
                     [&] { return find_source_lines(sections, addresses, entries); })) {
                found.emplace_back();
                if (each) found.back().emplace(std::move(each->file), each->line);
            }
            return found;
        },
        py::arg("line"), py::arg("line_text"), py::arg("addresses"), py::arg("entries"));
}

// What is here is of the process, so one interpreter has it. Before CPython 3.12, pybind11 would
// wait in any other one, for ever, for the GIL that the calling thread holds.
extern "C" PYBIND11_EXPORT PyObject* PyInit__native() {
    if (PyInterpreterState_Get() == PyInterpreterState_Main())
        return PyInit__native_of_main_interpreter();
    PyErr_SetString(
        PyExc_ImportError,
        "module tachograph.recorder._native does not support loading in subinterpreters");
    return nullptr;
}
