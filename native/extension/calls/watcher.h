// What the parts of watching share: the one watcher of this process. Used with the GIL held, but
// for the two times that the recorder's own thread looks at.
#pragma once

#include "calls/budget.h"
#include "calls/choice.h"
#include "calls/functions.h"
#include "calls/open_calls.h"
#include "calls/watching.h"

#include <Python.h>

#include <atomic>
#include <cstdint>

namespace tachograph::calls {

// Of each function that is called at all so many calls are to be seen in an interval, whatever they
// cost: those that are called rarely are most often those that take long.
inline constexpr uint64_t kFewCalls = 32;
// A period has so many rounds, in each of which a function can be watched for an interval.
inline constexpr int kRounds = 8;
inline constexpr int64_t kShortestIntervalNs = 50'000;

void count_loss(uint32_t cause);

// Windows, where functions are not watched one by one: all are, while one is open.
struct Windows {
    bool open = false;
    Moment opened;
    int64_t length_ns = 0;
    bool drawn = false;
    double events = 0;
    double spent_ns = 0;    // what watching had taken when it began
    double event_rate = 0;  // events per ns in earlier windows

    // Of all windows since `began`.
    Moment began;
    int64_t total_ns = 0;
    int64_t total_cpu_ns = 0;
    double cost_ns = 0;
    uint32_t count = 0;
    double squared = 0;

    void begin(Moment now);
};

struct Watcher {
    const tg_api* api = nullptr;
    const tg_offsets* offsets = nullptr;
    const Events* events = nullptr;
    Options options;
    bool begun = false;
    bool watching = false;  // begun and not paused
    bool turning = false;   // what we call now may lead to events, which are not the program's
    int loops = 0;
    bool only_loops = false;
    int extra = -1;  // index of what we keep with a code object

    Functions functions;
    OpenCalls open_calls{count_loss};
    Racing racing{0.95};
    SuccessiveRejects rejects{10};
    Choice* choice = &racing;
    Budget budget;
    Windows windows;

    uint32_t not_open = 0;  // functions that are known and not watched
    uint64_t closings = 0;  // how often that happened to any

    int64_t period_ns = 0;  // when this one began
    int64_t updated_ns = 0;
    uint64_t quota = 4 * kFewCalls;                 // calls that an interval is to have
    std::atomic<int64_t> next_round_ns{INT64_MAX};  // never, unless calls are watched
    std::atomic<int64_t> asked_ns{0};  // when the main thread was asked to begin one; 0: it was not
    uint64_t random = 0x9E3779B97F4A7C15ull;

    bool active() const { return watching && !turning; }
    Function* known(void* code) const { return static_cast<Function*>(tg_code_extra(code, extra)); }
};
extern Watcher watcher;

// intervals.cpp: a function is watched from here on, and not any more.

// A function that is called for the first time, watched from now on; nullptr if there is no room.
Function* learn(void* code, const void* frame, int64_t now_ns);
void open(Function* function, Moment now, int64_t length_ns, bool drawn);
// No further beginnings of its calls are seen.
void close(Function* function, Moment now, End why);
// Nor the ends of those that have begun.
void close_whole(Function* function, Moment now, End why);
// Whether a function that is called now is not watched any more.
bool is_enough(Function* function, int64_t now_ns);
// How long a function is to be watched now; 0: on and on.
int64_t interval_length(const Function& function);

// windows.cpp

void open_window(Moment now, bool drawn);
void close_window(Moment now);
// In an event: closes the window whose time is over.
void end_window(int64_t now_ns);

// rounds.cpp

void begin_period(Moment now);
// All functions that are not rejected are watched for an interval.
void begin_round(Moment now);
void next_round(int64_t now_ns);
// Settles when the next round begins.
void plan(int64_t now_ns);
// In an event: what is due.
void pass(int64_t now_ns);

// event_cost.cpp: measures what an event takes here, before anything is watched.
void measure_events();

}  // namespace tachograph::calls
