// Watches calls of Python functions, exactly while a function is watched, within a budget of time.
// What is watched is chosen anew in each period, as in Paikana (Palkar et al., section 3).
//
// The interpreter's events come from a source of events (sys.monitoring, or on CPython 3.11 a
// function that evaluates frames). All of this runs with the GIL held, but for `wants_turn`.
#pragma once

#include "compat.h"
#include "tachograph/api.h"

#include <cstdint>
#include <string>

namespace tachograph::calls {

struct Options {
    int64_t period_ns = 1'000'000'000;
    double budget = 0.02;  // part of the time that watching may take
    bool racing = true;    // else successive rejects
    uint32_t top = 10;     // of successive rejects: functions that are left
};

// Where events come from. Each function but `end` may be called in an event.
struct Events {
    // Whether functions are watched one by one. If not, all are, in windows.
    bool selective;
    // Asks the interpreter for events; false if that is not possible.
    bool (*begin)();
    void (*end)();
    // Functions that are called for the first time are told of, or not.
    void (*find)(bool yes);
    // Calls that an exception ends, or goes on in, are told of, or not.
    void (*exceptions)(bool yes);
    // The calls of a function, which are not watched, are watched from now on; the reverse.
    void (*watch)(void* code);
    void (*unwatch)(void* code);
};

// What the source of events is to do with further events like this one.
enum class Further { wanted, unwanted };

// Begins in this process; false if calls cannot be watched here, which is counted.
bool begin(const tg_api* api, const tg_offsets* offsets, const Options& options);
// The last rows; no more events.
void end();
// All rows, and it goes on.
void flush();
void pause(bool yes);
void after_fork_in_child(bool recorded);
bool on();

// A loop that the program has marked: it begins (false if no calls are watched in it), goes on, and
// ends.
bool loop_begins(const tg_api* api);
void loop_goes_on();
void loop_ends();

// Any thread, without the GIL: whether `turn` is due.
bool wants_turn(int64_t now_ns);
void turn();
// `turn` will not be called: it is due again.
void put_off();

// Events. `frame` is the frame's own address.
Further discovered(void* code, const void* frame);
Further started(void* code, const void* frame);
Further resumed(void* code, const void* frame);
Further suspended(void* code, const void* frame);
Further ended(void* code, const void* frame);
// The same by an exception. They cannot be declined one by one.
Further thrown(void* code, const void* frame);
Further unwound(void* code, const void* frame);
// The interpreter takes further events like the last one out of the code.
void declined();

}  // namespace tachograph::calls
