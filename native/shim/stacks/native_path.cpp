#include "stacks/native_path.h"

#include "base/kernel.h"
#include "base/safe_read.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/contexts.h"
#include "stacks/modules.h"
#include "stacks/native_contexts.h"
#include "stacks/own_stack.h"
#include "stacks/recorder.h"
#include "stacks/stack_capture.h"
#include "stacks/work_holder.h"

#include <csignal>
#include <initializer_list>

namespace tachograph::native_path {
namespace {

constexpr uint32_t kMostActivations = 256;
constexpr uint32_t kShortened = 16;  // frames of a path for which there was no room

// Memory of the walk's that is too large for a signal handler's stack.
class Room {
  public:
    Room() {
        size_t bytes = 0;
        at_ = contexts::borrow_scratch(&bytes);
        if (!at_) return;
        constexpr size_t kActivations = kMostActivations * sizeof(tg_activation);
        const size_t fitting = (bytes - kActivations) / kFrame;
        const uint32_t wanted = recorder().native_depth;
        most_ = wanted < fitting ? wanted : static_cast<uint32_t>(fitting);
    }
    ~Room() {
        if (at_) contexts::return_scratch(at_);
    }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;

    explicit operator bool() const { return at_ != nullptr; }
    tg_activation* activations() const { return static_cast<tg_activation*>(at_); }
    unwind::Frame* frames() const {
        return reinterpret_cast<unwind::Frame*>(activations() + kMostActivations);
    }
    native_contexts::Frame* path() const {
        return reinterpret_cast<native_contexts::Frame*>(frames() + most_);
    }
    uint32_t most() const { return most_; }

  private:
    static constexpr size_t kFrame = sizeof(unwind::Frame) + sizeof(native_contexts::Frame);

    void* at_ = nullptr;
    uint32_t most_ = 0;
};

// The Python frame that a native frame runs, if it is an activation of the evaluation loop: one of
// its locals says so. The activations are passed from the outermost to the innermost.
class Pairing {
  public:
    explicit Pairing(const tg_walk& python)
        : activations_(python.activations), left_(python.activation_count) {}

    uint32_t stack_of(const unwind::Frame& frame) {
        // Those outside of the path, or on another stack, are in no frame of it.
        for (uint32_t at = left_; at > 0; --at) {
            const auto address = reinterpret_cast<uint64_t>(activations_[at - 1].address);
            if (address < frame.sp || address >= frame.cfa) continue;
            left_ = at - 1;
            return activations_[at - 1].stack;
        }
        return kNone;
    }

  private:
    const tg_activation* activations_;
    uint32_t left_;
};

// From the outermost frame on, without those before `first`; false where there is no room.
bool intern(const native_contexts::Frame* path, uint32_t first, uint32_t count, bool last_room,
            uint32_t* stack) {
    *stack = 0;
    for (uint32_t at = count; at-- > first;) {
        *stack = native_contexts::intern(*stack, path[at], last_room);
        if (*stack == 0) return false;
    }
    return true;
}

// The innermost frame of the callers of `caller`, where the frames before it are hooks of ours.
uint32_t first_behind(uint64_t caller, const unwind::Frame* frames, uint32_t count) {
    uint32_t first = 0;
    while (first < count &&
           stack_capture::outside_caller(reinterpret_cast<const void*>(frames[first].pc)) == 0)
        ++first;
    // A call's address lies within the call.
    return first < count && frames[first].pc + 1 == caller ? first + 1 : first;
}

constexpr uint64_t kInterrupted = ~uint64_t{0};  // in place of a caller: the first frame itself

// `other`: the thread that is read, where it is not the calling one.
Found unwound(const Room& room, const unwind::Registers& start, const tg_walk& python,
              uint64_t caller, uint32_t* frames, const Other* other = nullptr) {
    bool unknown_code = false;
    Found found;
    found.path = unwind::walk(start, room.frames(), room.most(), frames, &unknown_code);
    const uint32_t count = *frames;
    // What was read of a thread that ran meanwhile is no path: none of it may enter the tables.
    if (other && !other->stands(other->context)) return {};
    if (unknown_code) modules::missed();
    // No frame has a caller while libraries are opened or closed.
    found.unknown_code =
        found.path == unwind::Path::truncated && (unknown_code || (count == 1 && room.most() > 1));
    const uint32_t first = caller == kInterrupted ? 1 : first_behind(caller, room.frames(), count);
    // Twice: the first time over, all that the second one needs of memory is asked for.
    native_contexts::Frame* path = room.path();
    Pairing pairing(python);
    uint64_t hash = 0;
    for (uint32_t at = count; at-- > first;) {
        const unwind::Frame& frame = room.frames()[at];
        const uint32_t stack = pairing.stack_of(frame);
        hash = native_contexts::next_hash(hash, frame.pc, stack);
        path[at] = {frame.pc, stack, hash};
    }
    if (intern(path, first, count, false, &found.stack)) return found;
    // The callers that lie furthest out are left out.
    const uint32_t innermost = count - first < kShortened ? count : first + kShortened - 1;
    hash = 0;
    for (uint32_t at = innermost; at-- > first;)
        path[at].hash = hash = native_contexts::next_hash(hash, path[at].pc, path[at].stack);
    if (!intern(path, first, innermost, true, &found.stack)) {
        spool::count(Loss::native_stacks_lost);
        return {};
    }
    spool::count(Loss::native_stacks_shortened);
    if (innermost < count) found.path = unwind::Path::truncated;
    return found;
}

}  // namespace

bool open() { return recorder().native_depth == 0 || (unwind::open() && native_contexts::open()); }

void forget() {
    native_contexts::forget();
    unwind::forget();
}

Found walk(bool fault_gets_through, const unwind::Registers& start, tg_walk* python) {
    if (recorder().native_depth == 0) {
        stack_capture::walk(fault_gets_through, python);
        return {};
    }
    const Room room;
    if (!room) {
        stack_capture::walk(fault_gets_through, python);
        spool::count(Loss::native_stacks_lost);
        return {};
    }
    python->activations = room.activations();
    python->activation_room = kMostActivations;
    stack_capture::walk(fault_gets_through, python);
    const bool before = safe_read::kernel_chosen();
    if (!fault_gets_through) safe_read::use_kernel(true);
    uint32_t count = 0;
    Found found = unwound(room, start, *python, kInterrupted, &count);
    if (python->state == TG_STACK_NONE)
        found.work_holder = work_holder::find(start, room.frames(), count, room.most());
    safe_read::use_kernel(before);
    python->activations = nullptr;
    return found;
}

namespace {

struct Hook {
    uint64_t caller;
    const unwind::Registers* here;
    tg_walk* python;
    Found found;
};

// On a stack of our own: that of the program may have little room.
void walk_aside(void* argument) {
    auto* hook = static_cast<Hook*>(argument);
    const Room room;
    if (!room) {
        spool::count(Loss::native_stacks_lost);
        stack_capture::walk(hook->python);
        return;
    }
    hook->python->activations = room.activations();
    hook->python->activation_room = kMostActivations;
    const bool gets_through = stack_capture::fault_gets_through();
    stack_capture::walk(gets_through, hook->python);
    const bool before = safe_read::kernel_chosen();
    if (!gets_through) safe_read::use_kernel(true);
    uint32_t count = 0;
    hook->found = unwound(room, *hook->here, *hook->python, hook->caller, &count);
    safe_read::use_kernel(before);
    hook->python->activations = nullptr;
}

}  // namespace

Found walk_other(const Other& thread, const Standing& at, tg_walk* python) {
    const auto walk = [&] {
        recorder().walker.walk_other(thread.tid, thread.hint, thread.stands, thread.context,
                                     python);
    };
    if (recorder().native_depth == 0 || at.pc == 0 || at.sp == 0) {
        walk();
        return {};
    }
    const Room room;
    if (!room) {
        spool::count(Loss::native_stacks_lost);
        walk();
        return {};
    }
    python->activations = room.activations();
    python->activation_room = kMostActivations;
    walk();
    unwind::Registers start;
    start.set(unwind::kPc, at.pc);
    start.set(unwind::kStack, at.sp);
    uint32_t count = 0;
    const Found found = unwound(room, start, *python, kInterrupted, &count, &thread);
    python->activations = nullptr;
    return found;
}

namespace {

// The program's handlers do not run on a stack of ours: they may need more of it than there is. Its
// faults and our traps get through.
class NoHandlers {
  public:
    NoHandlers() {
        sigset_t all;
        sigfillset(&all);
        for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
            sigdelset(&all, signal);
        kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, kernel::address(&all),
                     kernel::address(&before_), kKernelSet);
    }
    ~NoHandlers() {
        kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, kernel::address(&before_), 0, kKernelSet);
    }
    NoHandlers(const NoHandlers&) = delete;
    NoHandlers& operator=(const NoHandlers&) = delete;

  private:
    static constexpr long kKernelSet = 8;  // bytes
    sigset_t before_{};
};

}  // namespace

Found walk_hook(uint64_t caller, const unwind::Registers& here, tg_walk* python) {
    Hook hook{caller, &here, python, {}};
    const NoHandlers aside;
    if (recorder().native_depth == 0 || !own_stack::run(walk_aside, &hook))
        stack_capture::walk(python);
    return hook.found;
}

}  // namespace tachograph::native_path
