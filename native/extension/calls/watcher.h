// What the parts of watching share: the one watcher of this process. Used with the GIL held, but
// for the two times that the recorder's own thread looks at.
#pragma once

#include "calls/budget.h"
#include "calls/choice.h"
#include "calls/counting.h"
#include "calls/functions.h"
#include "calls/open_calls.h"
#include "calls/pace.h"
#include "calls/sample.h"
#include "calls/watching.h"

#include <Python.h>

#include <atomic>
#include <cstdint>

namespace tachograph::calls {

// Events beside those of beginning calls that an interval has room for, by call.
inline constexpr uint64_t kStepsByCall = 4;

void count_loss(uint32_t cause);

// Windows of times, where functions are not watched one by one: all are, while one is open.
struct Windows {
    bool open = false;
    bool counts = true;    // its calls are counted in no other window
    bool first = true;     // the one with which watching begins: calls are counted after it
    uint32_t lingers = 0;  // calls that are still seen, uncounted, of the one that was open
    Interval interval;     // of all functions
    double events = 0;
    double event_rate = 0;  // events per ns in earlier windows

    Moment began;
    Uncalled all;  // that are over, since `began`

    void begin(Moment now);
};

// The search for functions that are called for the first time, where functions are watched one by
// one. It costs an event and more for each, and is broken off where there are too many for the
// budget. A function that it has not found has not been called while it was on.
struct Search {
    bool on = false;
    Interval interval;

    // Since it was first broken off, at `began`: the times when it was on until it was broken off
    // again.
    bool broken_off = false;
    Moment began;
    int64_t total_ns = 0;
    int64_t total_cpu_ns = 0;
    Drawn drawn;       // without calls
    Uncalled counted;  // by `began`
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
    int extra = -1;           // index of what we keep with a code object
    int64_t starting_ns = 0;  // what preparing took, until it is charged

    Functions functions;
    OpenCalls open_calls{count_loss};
    Racing racing{0.95};
    SuccessiveRejects rejects{10};
    Choice* choice = &racing;
    Budget budget;
    Windows windows;
    Counting counting;
    Search search;

    uint32_t not_open = 0;  // functions that are known and not watched
    uint64_t silences = 0;  // how often the calls of any ceased to be seen

    double exceptions_ns = 0;         // what events of exceptions may still take
    bool exceptions_ignored = false;  // for the rest of the period

    double round_ns = 0;    // what beginning the last round took
    double opening_ns = 0;  // what it takes to begin to watch one function
    double round_part = 1;  // of the functions, in the last round
    int64_t period_ns = 0;  // when this one began
    int64_t updated_ns = 0;
    Quota quota;
    double stands_ns = 0;  // how long it is until the next round, on average; 0: it is not drawn
    std::atomic<int64_t> next_round_ns{INT64_MAX};  // never, unless calls are watched
    std::atomic<int64_t> asked_ns{0};  // when the main thread was asked to begin one; 0: it was not
    Chance chance;

    bool active() const { return watching && !turning; }
    Function* known(void* code) const { return static_cast<Function*>(tg_code_extra(code, extra)); }
};
extern Watcher watcher;

// intervals.cpp: a function is watched from here on, and not any more.

// A function that is called for the first time, watched from now on; nullptr if there is no room.
Function* learn(void* code, const void* frame, int64_t now_ns);
// It is a sample that stands for so much time, or none (0).
void open(Function* function, Moment now, Length length, double stands_ns);
// One that is watched has such an interval from here on.
void begin_interval(Function* function, Moment now, Length length, double stands_ns);
// Further calls of it are not counted.
void close(Function* function, Moment now);
// But they are seen, if another call's own time is to be known.
void begin_lingering(Function* function);
// They are not any more.
void rest(Function* function);
// The same, and calls that are missed are missing from own times.
void silence(Function* function);
// Nor the ends of those that have begun.
void close_whole(Function* function, Moment now);
// Whether a function that is called now is not to be watched any more after this call: since its
// interval has its length, or for another reason.
enum class Enough { no, by_length, yes };
Enough is_enough(Function* function, int64_t now_ns);
// The interval is over; by chance another one begins here.
void close_or_stay(Function* function, Moment now);
// Writes the row of a function and begins the next one.
void write(Function* function, Moment now, bool last);
Spent spent();

// search.cpp

void begin_search(Moment now);
void end_search(Moment now);
// What was collected is of another process, or of another time.
void forget_search(Moment now);
// A function's first call.
Function* find(void* code, const void* frame, int64_t now_ns);

// windows.cpp

// A function is called while a window is open, or calls are seen after it.
void join_window(Function* function);
void open_window(Moment now);
void close_window(Moment now);
// In an event: closes the window whose time is over.
void end_window(int64_t now_ns);
// Nor are calls seen any more that begin after it; the same, and they are not reported.
void forget_lingering();
void silence_window();
// Both: nothing that begins later is seen.
void shut_window(Moment now);

// rounds.cpp

void begin_period(Moment now);
// A function is called for the first time in this period.
void list_arm(Function* function);
// The part of the rounds in which a function takes part: which ones is left to chance.
double part_of_rounds(const Function& function);
// How long it is until the next round, on average; 0 where rounds are no samples, since calls are
// counted, of the function or of all that are not known yet.
double drawn_stands_ns(const Function* function = nullptr);
// Functions are watched for an interval.
void begin_round(Moment now);
void next_round(int64_t now_ns);
// Settles when the next round begins.
void plan(int64_t now_ns);
// In an event: what is due.
void pass(int64_t now_ns);

// event_cost.cpp: measures what an event takes here, before anything is watched.
void measure_events();

}  // namespace tachograph::calls
