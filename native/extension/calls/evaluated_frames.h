// Windows in which we evaluate the frames of all calls (PEP 523, CPython up to 3.13). Instructions
// run as they do without it. A profile function would have all of them run the slow way: what is
// pure Python took up to twice its time in a window, and was called less often there.
#pragma once

#include "calls/frame_evaluation.h"
#include "calls/window_state.h"

namespace tachograph::calls {

// The part of the samples of CPU time that open a window of counting, as the one that is open was
// drawn; of those that follow.
double part_of_samples();
void draw_windows(double part);
// CPU time from the sample to the window.
double warm_up_ns();
// From now on; the first window begins here, and was not drawn. False: the program has a function
// of its own that evaluates frames.
bool begin_windows(Moment now);
// While a window of counting goes on for so much CPU time: another one that times calls may begin.
void time_beside(Moment now, double passed_ns);
// What counts calls is over; what times them is, and calls that begin later are seen, or not.
void leave_counting();
void linger_in_frames();
void leave_timing();
// All that is open is over, and no other window begins.
void end_windows(Moment now);
// In a forked child, where nothing of it is true any more.
void forget_windows();
// While events are measured: all calls are counted, or timed. `way`: of those that follow.
void measure_windows(WindowState state, tg_way way = TG_WAYS);

}  // namespace tachograph::calls
