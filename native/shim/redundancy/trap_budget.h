// What traps may take of a thread's CPU time. A trap costs 3 us on one machine and 70 on another,
// most of it in the kernel and in what lies below that: it is measured when recording begins.
#pragma once

#include <cstdint>
#include <utility>

namespace tachograph::redundancy {

namespace budget {

// Opens a watchpoint with this data and times some of its traps, whose handler is installed, and
// what it slows down without them (slow_code.h). 0 or an errno.
int measure(uint64_t data);
// CPU ns that one takes, outside of our handler.
int64_t trap_ns();

}  // namespace budget

// A thread's account. Used by that thread alone.
class Account {
  public:
    // The thread has used so much CPU time.
    void earn(int64_t cpu_ns);
    void pay(int64_t cpu_ns) {
        credit_ns_ -= cpu_ns;
        paid_ns_ += cpu_ns;
    }
    // What was paid since the last call.
    int64_t take_paid() { return std::exchange(paid_ns_, 0); }
    // Time of the program's that a watchpoint has taken.
    void lose(int64_t cpu_ns) { credit_ns_ -= cpu_ns; }
    // Whether there is enough for one sample more; chance has a part in it, so that the program's
    // own rhythm does not choose. `random`: from 0 to 1.
    bool affords(double random) const;
    // Whether it has less than nothing, and of `cpu_ns` more was lost than it earns.
    bool overdrawn(int64_t lost_ns, int64_t cpu_ns) const;

  private:
    int64_t credit_ns_ = 0;
    int64_t paid_ns_ = 0;
};

}  // namespace tachograph::redundancy
