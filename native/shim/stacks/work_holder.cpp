#include "stacks/work_holder.h"

#include "base/kernel.h"
#include "base/safe_read.h"
#include "spool/layout.h"

#include <algorithm>
#include <atomic>

namespace tachograph::work_holder {
namespace {

using threads::Thread;

constexpr uint32_t kMostStacks = 128;
constexpr int kMostThefts = 8;  // from one worker to the next

struct Stack {
    uint64_t begin;
    uint64_t end;
    const Thread* thread;
};

// Those of all threads, as far as there is room.
class Stacks {
  public:
    Stacks() {
        const uint32_t high = threads::high_water();
        for (uint32_t index = 0; index < high && count_ < kMostStacks; ++index) {
            const Thread* thread = threads::at(index);
            const uint64_t end = thread->stack_end.load(std::memory_order_acquire);
            if (end == 0 || thread->tid.load(std::memory_order_acquire) <= 0) continue;
            const uint64_t begin = thread->stack_begin.load(std::memory_order_acquire);
            // Else the slot has gone on to another thread, and the two are of different stacks.
            if (thread->stack_end.load(std::memory_order_relaxed) != end) continue;
            lowest_ = std::min(lowest_, begin);
            highest_ = std::max(highest_, end);
            stacks_[count_++] = {begin, end, thread};
        }
    }

    const Stack* find(uint64_t address) const {
        if (address < lowest_ || address >= highest_) return nullptr;
        for (uint32_t at = 0; at < count_; ++at)
            if (address >= stacks_[at].begin && address < stacks_[at].end) return &stacks_[at];
        return nullptr;
    }

  private:
    Stack stacks_[kMostStacks];
    uint32_t count_ = 0;
    uint64_t lowest_ = ~uint64_t{0};
    uint64_t highest_ = 0;
};

// Left in a register by who created the thread.
bool was_inherited(const Thread& thread, uint64_t value) {
    for (const std::atomic<uint64_t>& each : thread.inherited)
        if (each.load(std::memory_order_relaxed) == value) return true;
    return false;
}

// To the stack of another thread, from a stack that is `own`.
class Search {
  public:
    Search(const Stacks& stacks, const Stack* own) : stacks_(&stacks), own_(own) {}

    const Stack* found() const { return found_; }
    uint64_t address() const { return address_; }

    void look_at(uint64_t value) {
        if (found_) return;
        const Stack* stack = stacks_->find(value);
        if (!stack || stack == own_) return;
        if (own_ && was_inherited(*own_->thread, value)) return;
        found_ = stack;
        address_ = value;
    }

    // What the frame has saved of its caller's registers.
    void look_into(const unwind::Frame& frame) {
        if (frame.cfa == 0) return;
        uint64_t pushed[unwind::kMostPushed];
        const uint64_t bytes = frame.pushed * sizeof pushed[0];
        const uint64_t lowest = frame.cfa - sizeof pushed[0] - bytes;
        if (!safe_read::copy(pushed, reinterpret_cast<const void*>(lowest), bytes)) return;
        for (uint32_t at = frame.pushed; at-- > 0;) look_at(pushed[at]);
    }

  private:
    const Stacks* stacks_;
    const Stack* own_;
    const Stack* found_ = nullptr;
    uint64_t address_ = 0;
};

}  // namespace

uint32_t find(const unwind::Registers& interrupted, unwind::Frame* frames, uint32_t count,
              uint32_t room) {
    const Stacks stacks;
    Search search(stacks, stacks.find(frames[0].sp));
    for (const uint8_t number : unwind::kPreserved) search.look_at(interrupted.values[number]);
    for (int thefts = 0; thefts < kMostThefts; ++thefts) {
        for (uint32_t at = 0; at < count && !search.found(); ++at) search.look_into(frames[at]);
        const Stack* stack = search.found();
        if (!stack) return kNone;
        if (stack->thread->python.load(std::memory_order_relaxed)) return stack->thread->id;
        if (!unwind::walk_around(search.address(), frames, room, &count)) return kNone;
        search = Search(stacks, stack);
    }
    return kNone;
}

}  // namespace tachograph::work_holder
