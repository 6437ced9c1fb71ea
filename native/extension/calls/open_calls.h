// Calls that have begun and not ended: a stack of them for each thread, and those of generators and
// coroutines that are suspended. Of fixed sizes; used with the GIL held.
#pragma once

#include "calls/functions.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::calls {

struct OpenCall {
    const void* frame;
    Function* function;
    uint32_t epoch;
    bool counted;        // false: it is only timed, for the own time of the call that it is in
    bool own_known;      // every known function was watched when it began
    bool timed;          // false: what it took is not known, for another stack ran meanwhile
    uint64_t silences;   // how often a function's calls had ceased to be seen when it began
    int64_t resumed_ns;  // when it last began to run
    double watched_ns;   // what watching had taken by then, of all calls
    int64_t before_ns;   // what it ran before that
    int64_t callees_ns;  // what watched functions that it called took

    bool lives() const { return function->code && function->epoch == epoch; }
};

// What became of a call.
struct Ended {
    Function* function = nullptr;  // nullptr: no call was found that ended
    OpenCall call{};
    int64_t time_ns = 0;
};

class OpenCalls {
  public:
    using Lost = void (*)(uint32_t cause);
    explicit OpenCalls(Lost lost) : lost_(lost) {}

    // The calling thread's call begins, or goes on. False if there is no room for it.
    bool push(const OpenCall& call);
    bool resume(const void* frame, int64_t now_ns, double watched_ns);
    // The calling thread's call in this frame ends, or is suspended. What watching took meanwhile,
    // for it and for the calls within it, is no time of the call's.
    Ended pop(const void* frame, int64_t now_ns, double watched_ns);
    // Returns the call that was suspended in this frame before, and never went on: it is over.
    Ended suspend(const Ended& ended);
    // Whether the calling thread is in a call that began after so many silences, and whose own time
    // is to be known.
    bool wants_callees(uint64_t silences) const;
    // In a forked child: there are no other threads.
    void forget_other_threads();

  private:
    static constexpr size_t kMostDepth = 1024;
    static constexpr size_t kMostThreads = 128;
    static constexpr size_t kSuspended = 4096;
    static constexpr size_t kProbes = 16;
    static constexpr size_t kLook = 64;

    struct Thread {
        std::atomic<bool> taken{false};
        uint32_t depth = 0;
        OpenCall calls[kMostDepth] = {};
    };
    // The calling thread's place, which is given back when the thread ends.
    struct Lease {
        Thread* thread = nullptr;
        ~Lease();
    };

    Thread* own();
    void drop_dead(Thread* thread);
    void give_up(const OpenCall& call, uint32_t cause);
    OpenCall* suspended_at(const void* frame, size_t probe);

    static thread_local Lease t_lease;
    Lost lost_;
    // All zero at first, and apart from what is not: they take no memory before they are used.
    static Thread s_threads[kMostThreads];
    static OpenCall s_suspended[kSuspended];
};

}  // namespace tachograph::calls
