// Windows in which calls are counted, and nothing else: an event is an addition, so that for what
// timing one call takes several are counted. Where the budget has room for all calls a window goes
// on, and numbers are exact.
#pragma once

#include "arch/processor.h"
#include "calls/dict_writes.h"
#include "calls/frame_evaluation.h"
#include "calls/functions.h"
#include "calls/sample.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tachograph::calls {

// Events take longer amid other work of the interpreter, which needs the processor's caches and
// predictions for itself, than in a loop that does nothing else: so many times as long. How much
// other work there is between events follows from how often they come. `alone` and `amid`: time
// from one event to the next, as a multiple of what events take in such a loop.
struct Surroundings {
    double factor = 1;
    double alone = 2;
    double amid = 8;

    // By the time from one event to the next, as such a multiple.
    double slowed(double apart) const {
        if (!(amid > alone)) return 1;
        return 1 + (factor - 1) * std::clamp((apart - alone) / (amid - alone), 0.0, 1.0);
    }
};

// What counting takes, in ns. Events are measured before anything is watched, and slowed since then
// as much as a piece of the interpreter's code is that needs no frame: other programs share the
// processor's cores.
struct CountingCost {
    // By the way in which a frame comes to be evaluated.
    double event[TG_WAYS] = {40, 10, 20, 40, 80, 60, 40, 40, 20};
    double piece = 0;  // that code, while events were measured
    Surroundings surroundings;
    double look = 50;        // at the clock
    double ticks_by_ns = 1;  // of the processor's counter
};

// What each event needs comes first, in two lines of the cache.
struct alignas(64) Counting {
    bool open = false;
    bool early = false;    // it follows another one so soon that its calls weigh differently
    uint64_t look_at = 0;  // the clock, by the processor's counter: that takes less to read
    double uncharged_ns = 0;
    double slowed = 1;           // events, when that was last measured
    double usual = 1;            // and of late
    double amid = 1;             // by what surrounds them
    int64_t charged_cpu_ns = 0;  // until when they were charged
    CountingCost cost;

    bool possible = false;
    bool goes_on = false;  // it is no sample, or not any more, and lasts while there is a budget
    Interval interval;
    Moment since;  // what was counted until here is in `all`
    int64_t earned_ns = 0;
    double ran_ns = 0;  // CPU time of windows of late, and what they have taken of it
    double taken_ns = 0;
    Moment closed{kNever, kNever};
    Uncalled all;  // windows that are over
    DictWrites writes;
};

// How long the piece of code takes now.
double measure_piece();
// The processor's counter.
inline uint64_t ticks() { return tg_ticks(); }
// What a window of the next sample of CPU time may take, in ns.
double allowance_ns();
// Calls are counted from `opened` on. `drawn`: that moment was.
void begin_counting(Moment opened, bool drawn);
// In an event, when a window is open.
void count_event(void* code, const void* frame, bool begins, int way);
// An event is not counted.
void charge_counting(int way);
// What was counted until now is in the rows that follow, but for a sample that is not over.
void settle_counting(Moment now);
// The same, and the window is over.
void end_counting(Moment now);
// What was counted is of another process, or of another time.
void forget_counting();
// The function is about to be freed.
void settle_freed(Function* function);

}  // namespace tachograph::calls
