// What the shim calls of an interpreter of any version from 3.9 on, found by name: it is linked
// with none.
#pragma once

#include <cstddef>

namespace tachograph::python {

using Object = void*;
using Function = Object (*)(Object self, Object argument);

struct Api {
    void* runtime = nullptr;
    int (*add_audit_hook)(int (*)(const char*, void*, void*), void*) = nullptr;
    int (*is_initialized)() = nullptr;
    Object (*frame)() = nullptr;       // of the calling thread, borrowed
    Object (*back)(Object) = nullptr;  // of a frame, a new reference; since 3.9
    int (*add_pending_call)(int (*)(void*), void*) = nullptr;
    Object (*builtins)() = nullptr;
    Object (*new_dict)() = nullptr;
    int (*set_item)(Object, const char*, Object) = nullptr;
    Object (*decode_path)(const char*) = nullptr;
    Object (*compile)(const char*, const char*, int) = nullptr;
    Object (*evaluate)(Object, Object, Object) = nullptr;
    Object (*new_function)(void*, Object, Object) = nullptr;
    Object (*from_long)(long) = nullptr;
    const char* (*utf8)(Object) = nullptr;
    Object (*tuple_item)(Object, ptrdiff_t) = nullptr;
    void (*release)(Object) = nullptr;
    Object (*error)() = nullptr;
    void (*clear_error)() = nullptr;
    int (*error_is)(Object) = nullptr;
    Object* interrupted = nullptr;  // where KeyboardInterrupt is
    int (*check_signals)() = nullptr;
    void (*interrupt)() = nullptr;

    // Whether the first item of a tuple is this string.
    bool first_is(Object tuple, const char* text) const;
};

// False if there is no interpreter in this program, or not one with all of that.
bool find(Api* api);

// Names for a piece of Python code that leaves nothing behind. The GIL is held.
class Globals {
  public:
    explicit Globals(const Api& python);
    ~Globals();
    Globals(const Globals&) = delete;
    Globals& operator=(const Globals&) = delete;

    void set(const char* name, const char* path);
    void set(const char* name, Object value);  // takes the reference
    // 0; 1 if it failed; -1 if a signal handler's error is left for the caller to raise. An
    // interrupt from the keyboard is the program's: it is raised there, at the next instruction.
    int run(const char* program, const char* file);

  private:
    const Api& python_;
    Object dict_;
};

}  // namespace tachograph::python
