#include "process/python.h"

#include <dlfcn.h>
#include <cstring>

namespace tachograph::python {
namespace {

constexpr int kFileInput = 257;  // Py_file_input

template <typename F>
bool look_up(F* to, const char* name) {
    *to = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
    return *to != nullptr;
}

}  // namespace

bool find(Api* api) {
    return look_up(&api->add_audit_hook, "PySys_AddAuditHook") &&
           look_up(&api->runtime, "_PyRuntime") &&
           look_up(&api->is_initialized, "Py_IsInitialized") &&
           look_up(&api->frame, "PyEval_GetFrame") && look_up(&api->back, "PyFrame_GetBack") &&
           look_up(&api->add_pending_call, "Py_AddPendingCall") &&
           look_up(&api->builtins, "PyEval_GetBuiltins") && look_up(&api->new_dict, "PyDict_New") &&
           look_up(&api->set_item, "PyDict_SetItemString") &&
           look_up(&api->decode_path, "PyUnicode_DecodeFSDefault") &&
           look_up(&api->compile, "Py_CompileString") &&
           look_up(&api->evaluate, "PyEval_EvalCode") &&
           look_up(&api->new_function, "PyCFunction_NewEx") &&
           look_up(&api->from_long, "PyLong_FromLong") && look_up(&api->utf8, "PyUnicode_AsUTF8") &&
           look_up(&api->tuple_item, "PyTuple_GetItem") && look_up(&api->release, "Py_DecRef") &&
           look_up(&api->error, "PyErr_Occurred") && look_up(&api->clear_error, "PyErr_Clear") &&
           look_up(&api->error_is, "PyErr_ExceptionMatches") &&
           look_up(&api->interrupted, "PyExc_KeyboardInterrupt") &&
           look_up(&api->check_signals, "PyErr_CheckSignals") &&
           look_up(&api->interrupt, "PyErr_SetInterrupt");
}

bool Api::first_is(Object tuple, const char* text) const {
    const Object first = tuple ? tuple_item(tuple, 0) : nullptr;
    const char* found = first ? utf8(first) : nullptr;
    if (!found) clear_error();
    return found && strcmp(found, text) == 0;
}

Globals::Globals(const Api& python) : python_(python), dict_(python.new_dict()) {
    if (dict_) python_.set_item(dict_, "__builtins__", python_.builtins());
}

Globals::~Globals() { python_.release(dict_); }

void Globals::set(const char* name, const char* path) { set(name, python_.decode_path(path)); }

void Globals::set(const char* name, Object value) {
    if (dict_ && value) python_.set_item(dict_, name, value);
    python_.release(value);
}

int Globals::run(const char* program, const char* file) {
    bool interrupted = false;
    if (python_.check_signals() != 0) {
        if (!python_.error_is(*python_.interrupted)) return -1;
        python_.clear_error();
        interrupted = true;
    }
    if (dict_ && !python_.error()) {
        const Object code = python_.compile(program, file, kFileInput);
        if (code) python_.release(python_.evaluate(code, dict_, dict_));
        python_.release(code);
    }
    const bool failed = !dict_ || python_.error();
    if (failed) interrupted = python_.error_is(*python_.interrupted) || interrupted;
    python_.clear_error();
    if (interrupted) python_.interrupt();
    return failed ? 1 : 0;
}

}  // namespace tachograph::python
