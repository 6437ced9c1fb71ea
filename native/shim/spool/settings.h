// What the recording command told this process in its environment, and how its children are told.
//
// The variables are taken out of the environment before the program's first line, and put into that
// of every program that is started from here: they are not seen by code that reads or replaces it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::settings {

// The process of the process log that started this one; -1: it is not known.
struct Parent {
    int64_t pid = -1;
    int64_t time_ns = -1;
};

// In the library's constructor. `parent`: what they say of the process that started this one. Where
// this process has other rights than its caller's, the variables are removed and not obeyed.
void take(char** environment, Parent* parent);
// This process, or an ancestor of it, is listed as this: what it starts is told so.
void be_parent(const Parent& parent);
// The same from inside a process that runs already, whose environment says nothing; what it starts
// does not belong to the recording. False: too long.
bool give(const char* spool, const char* config);
void take_back();
// Whether they came so: then libc's functions are hooked through import tables (import_tables.h).
bool given();

// Whether this process belongs to a recording, and whether what it starts is to belong to it.
bool known();
bool children();
void leave();  // the recording is over: from now on what is started does not belong to it
const char* spool();
const char* config();
const char* library();
// Whether Python code of ours has taken them already.
bool taken();
// The value of a key of the configuration; its length, 0 if there is none.
size_t value(const char* key, const char** text);

// What an environment with our variables needs: entries with the NULL at the end (0: it is used as
// it is), and bytes for texts.
struct Needs {
    size_t entries = 0;
    size_t text = 0;
};
Needs needs(char* const* environment);
void fill(char* const* environment, char** entries, char* text);

// Whether a program is started as it is, without our variables, and runs unrecorded. Asked before
// it is started, as the loader would complain: its file may be of another C library, of another
// processor, or see another file system. One that gets other rights than its caller's would run
// with variables that its caller chose, and one with a sanitizer's runtime must have that library
// first. `program` is the path of its file, nullptr if that is not known.
bool left_alone(const char* program, char* const* environment);

// The file that execvp starts for a name without a slash: its path in `to`, nullptr if there is
// none, or its path is too long.
const char* find_on_path(const char* name, char* to, size_t size);

}  // namespace tachograph::settings
