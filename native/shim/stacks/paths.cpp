#include "stacks/paths.h"

#include "base/kernel.h"
#include "spool/own_memory.h"
#include "stacks/contexts.h"
#include "stacks/generations.h"
#include "stacks/threads.h"

#include <atomic>

namespace tachograph::paths {
namespace {

constexpr uint32_t kMemos = 32;  // threads share them
constexpr uint32_t kMostSteps = 4096;

struct Step {
    uint32_t code;
    int32_t instruction;
    uint32_t node;
};

// A stack, the root first: each node is a child of the one before, so what a stack has in common
// with it from the root on has these nodes, whichever thread that stack is of.
struct Memo {
    uint32_t base;  // of the generation that the nodes are of
    uint32_t count;
    Step steps[kMostSteps];
};

struct State {
    Memo* memos = nullptr;
    std::atomic<bool> held[kMemos] = {};
};
constinit State g;

// The memo of the calling thread, unless it is in use: by another thread, or by this one, which a
// signal handler has interrupted.
class Held {
  public:
    explicit Held(bool wanted) {
        const threads::Thread* own = threads::own();
        if (!wanted || !g.memos || !own) return;
        const uint32_t number = threads::slot_of(own) % kMemos;
        if (g.held[number].exchange(true, std::memory_order_acquire)) return;
        number_ = number;
        const uint32_t base = contexts::first_stack(generations::place());
        if (memo()->base != base) memo()->count = 0;
        memo()->base = base;
    }
    ~Held() {
        if (number_ < kMemos) g.held[number_].store(false, std::memory_order_release);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    Memo* memo() const { return number_ < kMemos ? &g.memos[number_] : nullptr; }

  private:
    uint32_t number_ = kMemos;
};

bool is_step(const Memo* memo, uint32_t depth, const tg_frame& frame) {
    return depth < memo->count && memo->steps[depth].code == frame.id &&
           memo->steps[depth].instruction == frame.instruction;
}

// What was behind this depth belongs to another stack. A node whose record could not be written is
// not remembered: it is tried again.
bool remember(Memo* memo, uint32_t depth, const tg_frame& frame, uint32_t node) {
    memo->count = depth;
    if (depth >= kMostSteps || node == TG_NONE || !contexts::is_written(node)) return false;
    memo->steps[depth] = {frame.id, frame.instruction, node};
    memo->count = depth + 1;
    return true;
}

}  // namespace

void open() {
    if (!g.memos) own_memory::map_for_one_process(&g.memos, sizeof(Memo) * kMemos);
}

void forget() {
    kernel::clear_for_one_process(g.memos, sizeof(Memo) * kMemos);
    for (auto& held : g.held) held.store(false, std::memory_order_relaxed);
}

uint32_t intern(const tg_path& path) {
    // A shortened stack begins in the middle of another one.
    const Held held(path.last_room == 0);
    Memo* memo = held.memo();
    uint32_t outer = path.activation_count;
    uint32_t node = TG_NONE;
    uint32_t depth = 0;
    // Activations whose frames are left out have no node.
    while (outer > 0 && path.activations[outer - 1].innermost >= path.count)
        path.activations[--outer].stack = TG_NONE;
    for (size_t at = path.count; at-- > 0; ++depth) {
        const tg_frame& frame = path.frames[at];
        const tg_text* task = path.task && path.of_task == at ? path.task : nullptr;
        if (task) memo = nullptr;
        if (memo && is_step(memo, depth, frame)) {
            node = memo->steps[depth].node;
        } else {
            node = contexts::intern_stack(node, frame.id, frame.instruction, task,
                                          path.last_room != 0);
            if (memo && !remember(memo, depth, frame, node)) memo = nullptr;
            if (node == TG_NONE) return TG_NONE;
        }
        while (outer > 0 && path.activations[outer - 1].innermost == at)
            path.activations[--outer].stack = node;
    }
    return node;
}

}  // namespace tachograph::paths
