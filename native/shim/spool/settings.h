// The settings of this process: read from its environment, and passed on in that of its children.
//
// The variables are taken out of the environment before the program's first line, and put into that
// of every program that is started from here: they are not seen by code that reads or replaces it.
#pragma once

#include "tachograph/options.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::settings {

// The process of the process log that started this one; -1: it is not known.
struct Parent {
    int64_t pid = -1;
    int64_t time_ns = -1;
};

// In the library's constructor: takes our variables out of the environment and keeps them.
// `parent`: what they say of the process that started this one. Where this process has other rights
// than its caller's, the variables are removed and not obeyed.
void read_environment(char** environment, Parent* parent);
// The process that the process log lists this one as: what is started from here names it.
void set_parent_of_children(const Parent& parent);
// The same settings from inside a process that runs already, whose environment says nothing; what
// it starts does not belong to the recording. False: too long.
bool set_from_inside(const char* spool, const char* config);
void clear();
// Whether they were set from inside: then libc's functions are hooked through import tables
// (import_tables.h).
bool are_from_inside();

// Whether this process belongs to a recording.
bool are_set();
// Whether what this process starts is to belong to it, too.
bool pass_to_children();
// The recording is over: from now on what is started does not belong to it.
void stop_passing_to_children();
// Whether Python code of ours has read them already.
bool are_read_by_python();

const char* spool();
const char* config();
const char* library();
// How to record. Its texts stay until `clear`.
const tg_options& options();
// The key of a setting without which nothing can be recorded, or whose value is none; nullptr: all
// can be used.
const char* unusable();

// What an environment with our variables needs: entries with the NULL at the end (0: it is used as
// it is), and bytes for texts.
struct Size {
    size_t entries = 0;
    size_t text = 0;
};
Size size_of_child_environment(char* const* environment);
void fill_child_environment(char* const* environment, char** entries, char* text);

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
