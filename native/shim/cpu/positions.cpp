#include "cpu/positions.h"

#include "base/kernel.h"
#include "base/safe_read.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/recorder.h"

#include <atomic>

namespace tachograph::positions {
namespace {

using threads::Thread;

// A look takes about 2 us, and a pool may have a worker on each processor.
constexpr uint32_t kMostLooks = 32;

struct State {
    std::atomic<uint32_t> cursor{0};  // where the next sample begins, if there are too many threads
};
constinit State g;

HoldsWork holds(uint32_t holder, uint32_t thread) {
    if (holder == kNone) return HoldsWork::unknown;
    return holder == thread ? HoldsWork::yes : HoldsWork::no;
}

// No file of /proc is opened to learn more: its descriptor would be one of the program's.
void look(const Sampled& sampled, Thread* thread, pid_t tid) {
    kernel::ThreadCpu seen = kernel::read_cpu(tid);
    if (seen.cpu_ns < 0) return;
    void* hint = thread->walk_hint.load(std::memory_order_relaxed);
    bool running = !kernel::has_not_run(&seen);
    tg_walk found = kNotWalked;
    if (!running) {
        recorder().walker.walk_other(tid, &hint, kernel::has_not_run, &seen, &found);
        running = !kernel::has_not_run(&seen);
    }
    if (running) {
        found = kNotWalked;
        recorder().walker.walk_other(tid, &hint, nullptr, nullptr, &found);
    }
    thread->walk_hint.store(hint, std::memory_order_relaxed);
    const uint32_t id = thread->id.load(std::memory_order_acquire);
    if (thread->tid.load(std::memory_order_acquire) != tid) return;  // the slot is another's
    const spool::Ticket ticket = spool::reserve(Kind::position, sizeof(PositionRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<PositionRecord*>(ticket.record);
    record->time_ns = sampled.time_ns;
    record->cpu_ns = seen.cpu_ns;
    record->sampled = sampled.thread.id;
    record->thread = id;
    record->stack = found.stack;
    record->running = running ? 1 : 0;
    record->stack_state = found.state;
    record->holds_work = static_cast<uint8_t>(holds(sampled.work_holder, id));
    if (found.state == TG_STACK_LOST) spool::count(Loss::stacks_lost);
    spool::commit(ticket);
}

}  // namespace

void write(const Sampled& sampled, bool fault_gets_through) {
    const bool before = safe_read::kernel_chosen();
    if (!fault_gets_through) safe_read::use_kernel(true);
    const uint32_t high = threads::high_water();
    const uint32_t first = g.cursor.load(std::memory_order_relaxed);
    uint32_t looks = 0;
    for (uint32_t step = 0; step < high; ++step) {
        const uint32_t index = (first + step) % high;
        Thread* thread = threads::at(index);
        const pid_t tid = thread->tid.load(std::memory_order_acquire);
        if (tid <= 0 || !thread->python.load(std::memory_order_relaxed)) continue;
        if (looks == kMostLooks) {
            g.cursor.store(index, std::memory_order_relaxed);
            spool::count(Loss::positions_unread);
            break;
        }
        ++looks;
        look(sampled, thread, tid);
    }
    safe_read::use_kernel(before);
}

}  // namespace tachograph::positions
