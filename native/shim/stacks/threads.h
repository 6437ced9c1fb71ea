// The threads of the process: one slot each, from their start to their end.
#pragma once

#include "arch/registers.h"

#include <sys/types.h>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::threads {

// Registers that calls preserve, but for the stack pointer.
inline constexpr size_t kPreserved = sizeof arch::kPreserved;

struct Thread {
    std::atomic<pid_t> tid{0};  // 0 = the slot is free
    // Filled before `tid`. The helper reads them while the slot may change hands: what it read
    // belongs to `tid` if that is still there afterwards.
    std::atomic<uint32_t> id{0};  // dense id in the recording
    std::atomic<int64_t> start_ns{0};
    std::atomic<int64_t> start_cpu_ns{0};

    // CPU timer. `arming` guards it between the thread itself, the helper and a signal change.
    std::atomic_flag arming = ATOMIC_FLAG_INIT;
    std::atomic<int> timer{-1};
    std::atomic<int64_t> target_cpu_ns{0};

    // Last sample, as the thread's own clocks had it.
    std::atomic<int64_t> sampled_cpu_ns{0};
    int64_t sampled_system_ns = 0;
    std::atomic<int64_t> unrecorded_cpu_ns{0};  // spent in our handlers or while paused
    uint64_t random = 0;
    std::atomic<bool> traced{false};  // it stops at every signal, so it gets no timer
    std::atomic<bool> blocks{false};  // it blocked the signal when it was to get a timer

    // Where its stack is, filled before `stack_end`; 0: not known.
    std::atomic<uint64_t> stack_begin{0};
    // What registers that calls preserve held as it began: of who created it.
    std::atomic<uint64_t> inherited[kPreserved] = {};
    std::atomic<uint64_t> stack_end{0};

    std::atomic<bool> python{false};        // it has, or is about to have, Python frames
    std::atomic<void*> walk_hint{nullptr};  // of walks from the handlers of other threads
};

inline constexpr uint32_t kMostThreads = 8192;

bool open();
// Takes a slot for the calling thread or, at arming, for another one. nullptr when full: each
// thread that finds no slot is counted once.
Thread* add(pid_t tid, bool main, int64_t time_ns);
// Ends thread `tid`, if the slot is still its: no source watches it any more, writes THREAD_END,
// frees the slot. `cpu_ns` is used where its clock is gone already.
void end(Thread* thread, pid_t tid, int64_t time_ns, int64_t cpu_ns = -1);
// In a forked child: none of the parent's threads is here. And where a recording has ended, before
// another one of this process: what threads know of their own slots is not true any more.
void forget();
// Changes with each of these.
uint32_t generation();
// The kernel may give the ids of threads that were counted to others.
void forget_missed_that_ended();
// Which thread created it (kNone: not known) and what it was to run.
void write_origin(uint32_t id, uint32_t creator, uint64_t start);
// How a thread began: with a stack of this size (0: not known), and with these values in the
// registers that calls preserve.
struct Beginning {
    size_t stack_size = 0;
    uint64_t registers[kPreserved] = {};
};
// Where the calling thread's stack is. That of the process's first thread is known without.
void set_stack(Thread* own, const Beginning& beginning);
// What the kernel says of a thread now.
struct Status {
    bool blocks = false;  // this signal; false where it does not say
    int64_t sleeps =
        -1;  // how often it gave up its processor of its own accord; -1: it does not say
};
Status status(pid_t tid, int signal);
inline bool blocks(pid_t tid, int signal) { return status(tid, signal).blocks; }
void write_name(uint32_t id, bool python, const char* name, size_t length);

// Slots [0, high_water()) may be in use.
Thread* at(uint32_t index);
uint32_t high_water();
Thread* find(pid_t tid);
// Whether any slot is in use.
bool any();
// Its number among the slots.
uint32_t slot_of(const Thread* thread);
// Whether the pointer that a signal brought is one of our slots.
bool is_slot(const void* pointer);

// The calling thread's slot, if it was added by itself.
Thread* own();
void set_own(Thread* thread);
// The calling thread's slot, whichever thread added it: those that were there before the recording
// were added at arming. Costs a system call.
Thread* current();

}  // namespace tachograph::threads
