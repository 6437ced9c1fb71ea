// How often the program has written to dictionaries, in the windows and in all: up to CPython 3.13
// each write has a number (PEP 509), whether calls are counted or not. What part of them the
// windows have tells how much of the program ran in the windows, whatever counting takes.
#pragma once

#include "calls/functions.h"

#include <cstdint>

namespace tachograph::calls {

class DictWrites {
  public:
    // With the GIL; false if writes have no numbers here.
    bool prepare();
    // The row begins here, and writes before it are not in it.
    void begin(Moment now, const Uncalled& counted);
    // Since this was last called there was no window.
    void pass();
    // It was a window in which calls are counted; the number of writes.
    uint64_t pass_counted();
    // No window is open, and all of them are in `counted`.
    void write(Functions* functions, Moment now, const Uncalled& counted);
    bool is_due(Moment now) const { return begun_ && now.ns >= row_.next_row_ns; }
    // What was counted is of another process, or of another time.
    void forget() { begun_ = false; }
    Function* row() { return &row_; }

  private:
    // Numbers the program's writes since the last look: looking is a write, too.
    uint64_t look();

    PyObject* dict_ = nullptr;
    uint64_t step_ = 0;  // between the numbers of two writes
    uint64_t last_ = 0;
    bool flipped_ = false;
    bool begun_ = false;
    Function row_;
};

}  // namespace tachograph::calls
