#include "names.h"

#include "compat.h"

#include <Python.h>

#include <pybind11/pybind11.h>
#include <cstring>
#include <string>
#include <string_view>

namespace py = pybind11;

namespace tachograph {
namespace {

bool is_text(PyObject* object, const char* text) {
    return object && PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, text) == 0;
}

size_t read_name(char* buffer, size_t size) {
    PyFrameObject* frame = PyEval_GetFrame();  // borrowed
    if (!frame) return 0;
    const auto code =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const auto* fields = reinterpret_cast<PyCodeObject*>(code.ptr());
    if (!is_text(fields->co_qualname, "Thread.start")) return 0;
    const py::object thread = py::reinterpret_steal<py::object>(tg_local_variable(frame, "self"));
    if (!thread) return 0;
    const auto name =
        py::reinterpret_steal<py::object>(PyObject_GetAttrString(thread.ptr(), "_name"));
    if (!name || !PyUnicode_Check(name.ptr())) return 0;
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &length);
    if (!text) return 0;
    auto kept = static_cast<size_t>(length);
    if (kept > size) {
        kept = size;
        while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0) == 0x80)
            --kept;  // whole characters
    }
    memcpy(buffer, text, kept);
    return kept;
}

// In the middle of a fork, where a module or an attribute may be in any state: what is not there is
// no name.
py::object known_name() {
    const auto borrowed = [](PyObject* object) {
        return py::reinterpret_borrow<py::object>(object);
    };
    const py::object module = borrowed(PyImport_GetModuleDict());
    const py::object threading = borrowed(PyDict_GetItemString(module.ptr(), "threading"));
    if (!threading) return {};
    const auto active =
        py::reinterpret_steal<py::object>(PyObject_GetAttrString(threading.ptr(), "_active"));
    if (!active || !PyDict_Check(active.ptr())) return {};
    const py::int_ ident(PyThread_get_thread_ident());
    const py::object thread = borrowed(PyDict_GetItemWithError(active.ptr(), ident.ptr()));
    if (!thread) return {};
    return py::reinterpret_steal<py::object>(PyObject_GetAttrString(thread.ptr(), "_name"));
}

}  // namespace

std::string name_of_this_thread() {
    const py::error_scope keep;
    std::string name = "MainThread";
    const py::object known = known_name();
    Py_ssize_t length = 0;
    if (known && PyUnicode_Check(known.ptr()))
        if (const char* text = PyUnicode_AsUTF8AndSize(known.ptr(), &length))
            name.assign(text, static_cast<size_t>(length));
    PyErr_Clear();
    return name;
}

size_t name_of_starting_thread(char* buffer, size_t size) {
    // Not PyGILState_Check: once a subinterpreter was made, it says yes in every thread.
    int attached = 0;
    if (!Py_IsInitialized() || !tg_own_thread_state(&attached) || !attached) return 0;
    const py::error_scope keep;  // whatever exception is on its way stays as it is
    const size_t length = read_name(buffer, size);
    PyErr_Clear();
    return length;
}

}  // namespace tachograph
