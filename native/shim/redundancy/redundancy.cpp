// Redundant loads and stores, without a performance counter (after Witch, ASPLOS 2018, and PieProf,
// ESEC/FSE 2021): at a CPU sample the memory that the interrupted thread is about to access is
// watched, and the next access of the same kind says whether the value was the same.
//
// The watchpoints are the thread's own. More samples than watchpoints: each sample since a watch
// began replaces it with the probability 1/n (reservoir sampling), so that pairs which lie far
// apart are met as those that lie near.
#include "base/kernel.h"
#include "base/kernel_text.h"
#include "base/safe_read.h"
#include "base/trap_signal.h"
#include "memory/releases.h"
#include "redundancy/access_source.h"
#include "redundancy/block_content.h"
#include "redundancy/slow_code.h"
#include "redundancy/trap_budget.h"
#include "redundancy/traps.h"
#include "redundancy/watchers.h"
#include "redundancy/watchpoint.h"
#include "spool/spool.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/stack_capture.h"
#include "stacks/threads.h"
#include "tachograph/mixing.h"

#include <ucontext.h>
#include <atomic>
#include <csignal>
#include <cstring>

namespace tachograph::redundancy {
namespace {

constexpr uint32_t kWatched = 8;  // bytes of a watchpoint

// How often it is asked whether the program is traced.
constexpr int64_t kLookNs = 50'000'000;

struct Wanted {
    std::atomic<bool> on{false};
    std::atomic<bool> stopped{false};
    bool loads = false;
    bool stores = false;
    int64_t next_look_ns = 0;
    const AccessSource* source = nullptr;
};
constinit Wanted g;

bool stop() {
    if (!g.on.exchange(false)) return false;
    g.stopped.store(true);
    watchers::end_all(Outcome::cut);
    return true;
}

void stop_watching() {
    if (stop()) watchers::close_all();
}

// By the recorder's own thread, which has other descriptors: each thread closes its watchpoints at
// its next sample.
void stop_from_aside() {
    if (stop() && recording()) spool::count(Loss::watching_stopped);
}

// The program wants SIGTRAP.
void taken() {
    if (!g.on.load()) return;
    stop_watching();
    if (recording()) spool::count(Loss::watching_stopped);
}

// Nothing traps any more that the calling thread had armed.
void watch_no_more(Watcher* watcher) {
    watchers::end_all(watcher, Outcome::cut);
    disarm_ended(watcher);
    watcher->progress.disarm();
    watcher->frame = 0;
}

// The calling thread blocks SIGTRAP: sigwait may take what is not the program's.
void blocked() {
    Watcher* watcher = watchers::known();
    if (!watcher) return;
    watch_no_more(watcher);
}

// The largest piece that one watchpoint can watch: its address is a multiple of its size.
void watch_of(uint64_t address, uint32_t width, uint64_t* at, uint32_t* size) {
    for (uint32_t bytes = kWatched; bytes > 1; bytes /= 2) {
        const uint64_t first = (address + bytes - 1) & ~uint64_t{bytes - 1};
        if (first + bytes > address + width) continue;
        *at = first;
        *size = bytes;
        return;
    }
    *at = address;
    *size = 1;
}

bool watched_already(const Watcher& watcher, uint64_t address, uint32_t size) {
    for (const Watch& watch : watcher.watches)
        if (watch.state.load(std::memory_order_acquire) != State::free &&
            watch.address < address + size && address < watch.address + watch.size)
            return true;
    return false;
}

// A place for one sample more: a free one, or that of a watch which leaves it. nullptr: none.
Watch* place_for_one(Watcher* watcher) {
    for (uint32_t at = 0; at < watcher->watches_open; ++at)
        if (watcher->watches[at].state.load(std::memory_order_acquire) == State::free)
            return &watcher->watches[at];
    const auto first = static_cast<uint32_t>(next_random(&watcher->random));
    Watch* left = nullptr;
    for (uint32_t step = 0; step < watcher->watches_open; ++step) {
        Watch* watch = &watcher->watches[(first + step) % watcher->watches_open];
        ++watch->survived;
        if (left || uniform(&watcher->random) * watch->survived >= 1 || !claim(watch)) continue;
        end(watch, Outcome::replaced);
        left = watch;
    }
    return left;
}

struct Sampled {
    const Sample& sample;
    Place place;
    operands::Access access;
};

void fill(const Sampled& sampled, Watch* watch) {
    watch->access = sampled.access;
    watch->sampled = sampled.place;
    watch->cpu_ns = sampled.sample.cpu_ns;
    watch->thread = sampled.sample.thread->id.load(std::memory_order_relaxed);
    watch->begun = false;
    watch->value = watch->latest = 0;
    watch->strays = watch->stores = 0;
    watch->rested = watch->resting = false;
    watch->survived = 1;
}

// What is written of a sample whose access is not watched.
void leave_out(const Sampled& sampled, Access kind, Outcome outcome) {
    Watch unwatched;
    fill(sampled, &unwatched);
    unwatched.kind = kind;
    write_unwatched(unwatched, outcome);
}

// When the frame goes on to its next instruction, the native call that was sampled is over.
void follow_frame(Watcher* watcher, Watch* watch) {
    watch->frame = recorder().walker.progress ? recorder().walker.progress() : 0;
    watch->crossed.store(Crossed::unknown, std::memory_order_release);
    if (watch->frame == 0) return;
    if (watcher->frame != watch->frame)
        for (Watch& other : watcher->watches) {
            if (&other == watch || other.crossed.load(std::memory_order_acquire) != Crossed::no)
                continue;
            other.crossed.store(Crossed::unknown, std::memory_order_release);
            // Nothing would end its rest.
            if (other.resting && claim(&other)) end(&other, Outcome::replaced);
        }
    watcher->frame = watch->frame;
    if (watcher->progress.arm(Watchpoint::On::store, watch->frame, kWatched))
        watch->crossed.store(Crossed::no, std::memory_order_release);
}

void begin(Watcher* watcher, const Sampled& sampled, Access kind, uint64_t address, uint32_t size) {
    Watch* watch = place_for_one(watcher);
    if (!watch) return leave_out(sampled, kind, Outcome::no_room);
    fill(sampled, watch);
    watch->kind = kind;
    watch->address = address;
    watch->size = size;
    releases::want(address);
    follow_frame(watcher, watch);
    watch->state.store(State::armed, std::memory_order_release);
    const auto on = kind == Access::store ? Watchpoint::On::store : Watchpoint::On::any;
    if (!watch->watchpoint.arm(on, address, size) && claim(watch)) end(watch, Outcome::cut);
}

bool is_header(uint64_t address, uint64_t size) {
    return recorder().walker.is_header && recorder().walker.is_header(address, size) != 0;
}

Outcome outcome_of(operands::Next next) {
    switch (next) {
        case operands::Next::stack:
            return Outcome::stack;
        case operands::Next::header:
            return Outcome::header;
        case operands::Next::undecoded:
            return Outcome::undecoded;
        default:
            return Outcome::none;
    }
}

void look(Watcher* watcher, const Sample& sample) {
    Sampled sampled{sample, {}, {}};
    Place& place = sampled.place;
    place.time_ns = sample.time_ns;
    place.pc = static_cast<uint64_t>(sample.context->uc_mcontext.gregs[REG_RIP]);
    place.stack = sample.found.stack;
    place.stack_state = sample.found.state;
    place.native_stack = sample.native_stack;
    place.native_path = sample.native_path;

    const operands::Next next =
        g.source->access_of(sample, {.loads = g.loads, .stores = g.stores, .is_header = is_header},
                            &watcher->random, &sampled.access);
    const operands::Access& access = sampled.access;
    if (next != operands::Next::found)
        return leave_out(sampled, static_cast<Access>(kNoAccess), outcome_of(next));
    const Access kind = access.writes ? Access::store : Access::load;
    place.pc = access.pc;
    place.width = static_cast<uint8_t>(access.width);
    place.opcode = access.opcode;
    uint64_t address = 0;
    uint32_t size = 0;
    watch_of(access.address, access.width, &address, &size);
    if (watched_already(*watcher, address, size)) return leave_out(sampled, kind, Outcome::no_room);
    begin(watcher, sampled, kind, address, size);
}

// Watchpoints that have lain in wait have cost what some code took longer. If there is no time left
// for that, they end.
void pay_for_slow_code(Watcher* watcher, const Sample& sample) {
    const int64_t paid_ns = watcher->account.take_paid();
    bool armed = watcher->progress.armed();
    for (const Watch& watch : watcher->watches) armed = armed || watch.watchpoint.armed();
    if (!armed) return;
    const int64_t lost_ns = slow_code::lost_ns(sample, paid_ns);
    watcher->account.lose(lost_ns);
    if (!watcher->account.overdrawn(lost_ns, sample.cpu_ns)) return;
    watch_no_more(watcher);
}

void sampled(const Sample& sample) {
    if (!g.on.load(std::memory_order_acquire)) {
        // Stopped by a thread that does not share our descriptors.
        if (g.stopped.load(std::memory_order_relaxed)) watchers::leave();
        return;
    }
    if (sample.found.state == TG_STACK_NONE || sample.found.stack == kNone) return;
    if (sigismember(&sample.context->uc_sigmask, SIGTRAP) == 1) return;
    const auto pc = static_cast<uint64_t>(sample.context->uc_mcontext.gregs[REG_RIP]);
    if (stack_capture::is_ours(pc)) return;
    Watcher* watcher = watchers::own(sample.thread);
    // A sample in the middle of a trap's handler is of our own doing.
    if (!watcher || watcher->busy.exchange(true)) return;
    const bool before = safe_read::kernel_chosen();
    if (!sample.fault_gets_through) safe_read::use_kernel(true);
    const int64_t start_ns = kernel::own_cpu_ns();
    pay_for_slow_code(watcher, sample);  // for what has ended as well, and lay in wait until now
    disarm_ended(watcher);
    watcher->account.earn(sample.cpu_ns);
    if (watcher->account.affords(uniform(&watcher->random))) look(watcher, sample);
    watcher->account.pay(kernel::own_cpu_ns() - start_ns);
    safe_read::use_kernel(before);
    watcher->busy.store(false);
}

bool prepare(const tg_options& options) {
    g.loads = (options.redundancy & TG_REDUNDANT_LOADS) != 0;
    g.stores = (options.redundancy & TG_REDUNDANT_STORES) != 0;
    if (g.loads || g.stores) g.source = &choose_source();
    return true;
}

int start() {
    if (!g.loads && !g.stores) return 0;
    // Without all of these, recording goes on, and says what is missing.
    if (!watchpoints_are_safe() || !trap_signal::install(on_trap, taken, blocked)) {
        spool::count(Loss::watchpoints_refused);
        return 0;
    }
    if (is_traced() || budget::measure(watchers::kTrial) != 0) {
        trap_signal::remove();
        spool::count(Loss::watchpoints_refused);
        return 0;
    }
    block_content::choose_key();
    releases::listen(watchers::end_released);
    g.on.store(true, std::memory_order_release);
    return 0;
}

constexpr Source kSource{
    .name = "redundancy",
    .prepare = prepare,
    .start = start,
    .pause =
        [](bool yes) {
            if (yes) watchers::end_all(Outcome::cut);
        },
    .sampled = sampled,
    .tick =
        [](int64_t now_ns) {
            if (!g.on.load(std::memory_order_acquire)) return true;
            // Another handler of SIGTRAP: a trap would be the program's death.
            if (!trap_signal::verify()) stop_from_aside();
            if (now_ns < g.next_look_ns) return true;
            g.next_look_ns = now_ns + kLookNs;
            // A debugger would stop at each trap, and wants the watchpoints for itself.
            if (is_traced()) stop_from_aside();
            return true;
        },
    .keep = [] { return watchers::end_all(Outcome::cut); },
    .flush = [](bool) { watchers::end_all(Outcome::cut); },
    .finish = stop_watching,
    .stop = stop_watching,
    .cost = traps_cost_ns,
    .unwatch = [](threads::Thread* thread) { watchers::abandon(thread); },
    .leave = [](threads::Thread*) { watchers::leave(); },
    .after_fork =
        [](bool in_child) {
            if (!in_child) return;
            g.on.store(false);
            watchers::forget();
            trap_signal::remove();
        },
};
TG_REGISTER_SOURCE(kSource);

}  // namespace
}  // namespace tachograph::redundancy
