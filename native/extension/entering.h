// Enters a process that was not prepared for it: has its main thread make one call when it next
// runs Python, as it makes those of Py_AddPendingCall. CPython 3.11 to 3.13. Later ones run a file
// that is named to them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tachograph::entering {

// Where things lie in a process, all of them in the interpreter's file.
struct Places {
    uintptr_t runtime = 0;   // _PyRuntime
    uintptr_t function = 0;  // PyRun_SimpleString
    uintptr_t text = 0;      // the unused end of a page that is not mapped for writing,
    size_t room = 0;         // its bytes
    uintptr_t code = 0;      // such an end in code, for tg_entry_call; 0: there is none
};

// Those of this process. Nothing if it is not known for sure how this interpreter keeps its calls:
// one is added here as well, and must be where it is looked for. With the GIL.
std::optional<Places> own_places();

enum class Outcome {
    done,
    made,         // the main thread has taken it
    busy,         // it may be possible a moment later
    gone,         // the process has ended
    not_allowed,  // it may not be traced, or is traced already
    other,        // another program than this interpreter, or it has not begun yet
    too_long,     // there is no place for the text
};
const char* name(Outcome outcome);

// Each stops all threads of the process for a moment, and lets them go on. Nothing is called in the
// process and none of its signals is lost. It runs the same interpreter's file as this one:
// `places` are where it has what this one has.
//
// Adds the call of tg_entry_call with `code`, if the queue is empty; where there is no place for
// that, the call of PyRun_SimpleString with `simple`.
Outcome add(pid_t pid, const Places& places, const std::string& code, const std::string& simple);
// Has the main thread look at the queue, if our call is still in it.
Outcome remind(pid_t pid, const Places& places);
// Takes our call back.
Outcome take_back(pid_t pid, const Places& places);

// Where this process has its runtime, which has files run that others name. From 3.14 on, else 0.
uintptr_t own_runtime();
bool has_several_interpreters(pid_t pid, uintptr_t runtime);
// What sys.remote_exec does, for the main thread of the main interpreter: that takes the newest
// interpreter, which may be a subinterpreter.
Outcome run_in_main(pid_t pid, uintptr_t runtime, const std::string& path);

}  // namespace tachograph::entering
