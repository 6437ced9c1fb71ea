#include "redundancy/traps.h"

#include "base/fault.h"
#include "base/kernel.h"
#include "base/safe_read.h"
#include "base/sandbox.h"
#include "base/trap_signal.h"
#include "spool/spool.h"
#include "stacks/native_path.h"
#include "stacks/own_stack.h"
#include "stacks/recorder.h"
#include "stacks/stack_capture.h"
#include "tachograph/mixing.h"

#include <atomic>

namespace tachograph::redundancy {
namespace {

// Traps are dear (budget.h): so many of one watch say nothing, and no more.
constexpr uint32_t kMostStrays = 4;
constexpr uint32_t kMostStores = 4;
// Of loads that their own call repeats, those that wait for a later call. The others say which
// functions of a call load the same.
constexpr double kRestingPart = 0.5;

constinit std::atomic<int64_t> g_cost_ns{0};

struct Trapped {
    Watcher* watcher;
    Watch* watch;
    const ucontext_t* context;
};

// By the kernel, whose own accesses do not trap.
uint64_t read_value(const Watch& watch, bool* read) {
    uint64_t value = 0;
    const bool before = safe_read::kernel_chosen();
    safe_read::use_kernel(true);
    *read = safe_read::copy(&value, reinterpret_cast<const void*>(watch.address), watch.size);
    safe_read::use_kernel(before);
    return value;
}

void finish(Watch* watch, Outcome outcome) {
    watch->watchpoint.disarm();
    end(watch, outcome);
}

void go_on(Watch* watch) { watch->state.store(State::armed, std::memory_order_release); }

void stray(Watch* watch, uint32_t most, Outcome outcome, uint32_t* count) {
    if (++*count < most) return go_on(watch);
    finish(watch, outcome);
}

void write_pair(const Trapped& trapped, const operands::Access& access, bool equal) {
    Place partner;
    partner.time_ns = kernel::monotonic_ns();
    partner.pc = access.pc;
    partner.opcode = access.opcode;
    partner.width = static_cast<uint8_t>(access.width);
    trapped.watch->watchpoint.disarm();
    tg_walk found = kNotWalked;
    const native_path::Found native = native_path::walk(
        fault::gets_through(trapped.context), unwind::registers_of(*trapped.context), &found);
    partner.stack = found.stack;
    partner.stack_state = found.state;
    partner.native_stack = native.stack;
    partner.native_path = static_cast<uint8_t>(native.path);
    end(trapped.watch, Outcome::pair, &partner, equal);
}

// Most of what a call loads it loads several times, and of its next call such a pair tells nothing.
// So some watches rest until the call is over, without a trap. One place at least is for new ones.
bool may_rest(const Trapped& trapped) {
    Watcher* watcher = trapped.watcher;
    if (trapped.watch->crossed.load(std::memory_order_acquire) != Crossed::no) return false;
    if (trapped.watch->frame != watcher->frame || !watcher->progress.armed()) return false;
    uint32_t resting = 1;
    for (const Watch& watch : watcher->watches)
        if (watch.resting && watch.state.load(std::memory_order_acquire) != State::free) ++resting;
    return resting < watcher->watches_open && uniform(&watcher->random) < kRestingPart;
}

void rest(Watch* watch) {
    watch->watchpoint.disarm();
    watch->rested = watch->resting = true;
    go_on(watch);
}

// The call is over: the next access is of another one.
void wake(Watch* watch) {
    if (!claim(watch)) return;
    watch->resting = false;
    bool read = false;
    watch->latest = read_value(*watch, &read);  // the call may have stored to it
    if (!read || !watch->watchpoint.arm(Watchpoint::On::any, watch->address, watch->size))
        return finish(watch, Outcome::unclear);
    go_on(watch);
}

// The second access, or a store between two loads.
void meet(const Trapped& trapped) {
    Watch* watch = trapped.watch;
    const auto* registers = trapped.context->uc_mcontext.gregs;
    operands::Access access = watch->access;
    if (static_cast<uint64_t>(registers[REG_RIP]) != access.next_pc &&
        operands::last(registers, watch->address, watch->size, &access) != operands::Last::found)
        return finish(watch, Outcome::unclear);
    bool read = false;
    const uint64_t value = read_value(*watch, &read);
    if (!read) return finish(watch, Outcome::unclear);
    const uint64_t before = watch->latest;
    watch->latest = value;
    if (watch->kind == Access::store) {
        if (!access.writes) return finish(watch, Outcome::unclear);
        return write_pair(trapped, access, value == watch->value);
    }
    if (!access.reads) return stray(watch, kMostStores, Outcome::stored_over, &watch->stores);
    if (may_rest(trapped)) return rest(watch);
    // What loads and stores has loaded what was there before it.
    write_pair(trapped, access, (access.writes ? before : value) == watch->value);
}

void handle(void* argument) {
    const auto& trapped = *static_cast<const Trapped*>(argument);
    Watch* watch = trapped.watch;
    const auto pc = static_cast<uint64_t>(trapped.context->uc_mcontext.gregs[REG_RIP]);
    own_stack::spare_alternate(trapped.context);
    const bool before = safe_read::kernel_chosen();
    if (!fault::gets_through(trapped.context)) safe_read::use_kernel(true);
    if (watch->begun) {
        meet(trapped);
    } else if (pc != watch->access.next_pc) {
        stray(watch, kMostStrays, Outcome::unclear, &watch->strays);
    } else {
        bool read = false;
        watch->value = watch->latest = read_value(*watch, &read);
        watch->begun = true;
        read ? go_on(watch) : finish(watch, Outcome::unclear);
    }
    safe_read::use_kernel(before);
}

// The frame of some samples has gone on.
void progressed(Watcher* watcher) {
    watcher->progress.disarm();
    for (Watch& watch : watcher->watches) {
        if (watch.frame != watcher->frame) continue;
        Crossed not_yet = Crossed::no;
        watch.crossed.compare_exchange_strong(not_yet, Crossed::yes);
        if (watch.resting) wake(&watch);
    }
    watcher->frame = 0;
}

void on_own_trap(Watcher* watcher, Watch* watch, const trap_signal::Trap& trap,
                 const ucontext_t* context) {
    const bool ours =
        watcher->busy.load(std::memory_order_relaxed) ||
        stack_capture::is_ours(static_cast<uint64_t>(context->uc_mcontext.gregs[REG_RIP]));
    if (!claim(watch)) {
        // Ended by another thread; or in the middle of a handler that will see to it.
        if (watch->state.load(std::memory_order_acquire) == State::free) watch->watchpoint.disarm();
        return;
    }
    if (watch->resting) return go_on(watch);
    if (trap.address != watch->address || trap.late)
        return finish(watch, Outcome::unclear);  // what came first is not known any more
    if (ours) return stray(watch, kMostStrays, Outcome::unclear, &watch->strays);
    watcher->busy.store(true);
    Trapped trapped{watcher, watch, context};
    if (!own_stack::run(handle, &trapped)) finish(watch, Outcome::unclear);
    watcher->busy.store(false);
}

}  // namespace

bool on_trap(siginfo_t* info, ucontext_t* context) {
    trap_signal::Trap trap;
    if (!trap_signal::read(info, &trap) || !watchers::is_ours(trap.data)) return false;
    Watcher* watcher = nullptr;
    uint32_t place = 0;
    if (sandbox::entered() || !watchers::of_trap(trap.data, &watcher, &place)) return true;
    const int64_t start_ns = kernel::own_cpu_ns();
    if (place == kMostWatches)
        progressed(watcher);
    else
        on_own_trap(watcher, &watcher->watches[place], trap, context);
    const int64_t taken_ns = kernel::own_cpu_ns() - start_ns + budget::trap_ns();
    watcher->account.pay(taken_ns);
    g_cost_ns.fetch_add(taken_ns, std::memory_order_relaxed);
    // Our own time is not charged to the program.
    watcher->thread->sampled_cpu_ns.fetch_add(taken_ns, std::memory_order_relaxed);
    watcher->thread->unrecorded_cpu_ns.fetch_add(taken_ns, std::memory_order_relaxed);
    return true;
}

void disarm_ended(Watcher* watcher) {
    for (Watch& watch : watcher->watches)
        if (watch.watchpoint.armed() && watch.state.load(std::memory_order_acquire) == State::free)
            watch.watchpoint.disarm();
}

int64_t traps_cost_ns() { return g_cost_ns.load(std::memory_order_relaxed); }

}  // namespace tachograph::redundancy
