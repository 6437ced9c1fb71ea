// The wait sampler: off-CPU time of every thread, on its Python stack, without a signal to any
// thread.
//
// A thread's off-CPU time between two looks is wall time minus the advance of its CPU clock, which
// is exact; sampling only decides which stack it is attributed to. While a thread's clock does not
// advance, the thread is still at the same place, and its open record is extended.
#include "base/kernel.h"
#include "base/large_data.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "stacks/native_path.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/threads.h"
#include "waits/blocked.h"
#include "waits/unobserved_wait.h"

#include <cstring>

namespace tachograph::waits {
namespace {

using threads::Thread;

// The work of a tick is bounded: more threads are looked at in turns, over longer intervals.
constexpr uint32_t kLooksPerTick = 128;
constexpr uint32_t kWalksPerTick = 48;
constexpr int64_t kLongestSpanNs = 1'000'000'000;  // of a record, if the thread ran in between
constexpr int64_t kLeastUnobservedNs = 50'000'000;
constexpr int64_t kRemoteAfterIntervals = 20;
constexpr int64_t kLongestCallNs = 5'000'000'000;  // of CPU time, in one system call
constexpr int kLooksAtUnknown = 20;
constexpr int64_t kNameAfterNs = 50'000'000;

// A wait record in the spool that may still be extended.
struct OpenWait {
    uint8_t* record = nullptr;
    uint32_t sequence = 0;  // its segment
    int64_t cpu_ns = 0;     // the thread's CPU clock when it was last seen
    int looks_left = 0;     // how many more walks are tried while its native code is unknown
};

// Whether a thread whose timer is silent may be in one long system call: it has not slept since.
struct LongCall {
    int64_t sampled_cpu_ns = -1;  // since this sample
    int64_t asked_cpu_ns = 0;     // when the kernel was last asked
    int64_t sleeps = -1;          // what it said
};

// The helper's state of a thread, beside the slot that the thread itself owns.
struct Watched {
    uint32_t id = kNone;
    bool named = false;
    int64_t start_ns = 0;
    int64_t seen_ns = 0;
    int64_t seen_cpu_ns = 0;
    LongCall long_call;
    UnobservedWait unobserved;
    void* walk_hint = nullptr;
    OpenWait wait;
};

struct State {
    Watched watched[threads::kMostThreads];
    uint32_t cursor = 0;
    uint32_t walks = 0;
    bool calm = true;
};
constinit TG_LARGE_DATA State g;

WaitRecord* open_record(Watched* watched) {
    if (!spool::is_current(watched->wait.sequence)) watched->wait.record = nullptr;
    return reinterpret_cast<WaitRecord*>(watched->wait.record);
}

void grow(Watched* watched, WaitRecord* record, int64_t now, int64_t off) {
    watched->unobserved.placed(off, static_cast<Target>(record->target));
    __atomic_store_n(&record->off_cpu_ns, record->off_cpu_ns + off, __ATOMIC_RELAXED);
    __atomic_store_n(&record->end_ns, now, __ATOMIC_RELEASE);
}

struct Place {
    tg_walk walk = kNotWalked;
    native_path::Found native;
    blocked::Call call;
};

struct Look {
    int64_t now;
    int64_t cpu;  // the thread's CPU clock
    int64_t off;  // off-CPU time since the last look
};

bool goes_on(const WaitRecord& record, const Place& place, int64_t now) {
    return record.stack == place.walk.stack && record.stack_state == place.walk.state &&
           record.native_stack == place.native.stack &&
           record.native_path == static_cast<uint8_t>(place.native.path) &&
           record.span == place.walk.span && record.syscall == place.call.number &&
           record.pc == place.call.pc && record.target == static_cast<uint8_t>(place.call.target) &&
           now - record.start_ns < kLongestSpanNs;
}

OpenWait write_span(uint32_t thread, const Place& place, const Look& look) {
    const spool::Ticket ticket = spool::reserve(Kind::wait, sizeof(WaitRecord));
    if (!ticket.record) return {};
    auto* record = reinterpret_cast<WaitRecord*>(ticket.record);
    record->start_ns = look.now - look.off;
    record->end_ns = look.now;
    record->off_cpu_ns = look.off;
    record->pc = place.call.pc;
    record->thread = thread;
    record->stack = place.walk.stack;
    record->syscall = place.call.number;
    record->target = static_cast<uint8_t>(place.call.target);
    record->stack_state = place.walk.state;
    record->native_path = static_cast<uint8_t>(place.native.path);
    record->native_stack = place.native.stack;
    record->span = place.walk.span;
    if (place.call.pc != 0) modules::saw(place.call.pc);
    spool::commit(ticket);
    return {ticket.record, ticket.sequence, look.cpu};
}

// Writes off-CPU time without a stack: a span of unknown time, and before it a span of the time
// that the thread was ready to run.
void flush_unobserved(Watched* watched, pid_t tid, const Look& look) {
    if (watched->unobserved.off_ns() < kLeastUnobservedNs) return;
    const UnobservedWait::Sum sum = watched->unobserved.take(tid);
    Place nowhere;
    nowhere.walk.state = TG_STACK_UNSEEN;
    if (sum.unknown_ns > 0) write_span(watched->id, nowhere, {look.now, look.cpu, sum.unknown_ns});
    nowhere.call.target = Target::cpu;
    const int64_t end_ns = look.now - sum.unknown_ns;
    if (sum.ready_ns > 0) write_span(watched->id, nowhere, {end_ns, look.cpu, sum.ready_ns});
}

// Whether a thread may be in one long system call: the signal comes at its end, with all its time.
// One that sleeps in between and is never sampled runs between the ticks of the kernel's clock.
bool is_in_a_long_call(LongCall* call, pid_t tid, int64_t sampled, int64_t cpu) {
    const int64_t least = kRemoteAfterIntervals / 2 * recorder().interval_ns;
    const bool first = call->sampled_cpu_ns != sampled;
    if (!first && cpu - call->asked_cpu_ns < least) return true;
    const threads::Status status =
        threads::status(tid, recorder().signal.load(std::memory_order_relaxed));
    const bool slept = !first && status.sleeps != call->sleeps;
    *call = {sampled, cpu, slept ? call->sleeps : status.sleeps};
    return !status.blocks && !slept && cpu - sampled < kLongestCallNs;
}

// Writes CPU time that the thread's timer did not report for long: the thread has none, blocks our
// signal, or runs when the kernel does not look.
void sample_from_outside(Thread* thread, Watched* watched, pid_t tid, const Look& look) {
    const int64_t least = kRemoteAfterIntervals * recorder().interval_ns;
    int64_t sampled = thread->sampled_cpu_ns.load(std::memory_order_acquire);
    if (thread->tid.load(std::memory_order_acquire) != tid) return;  // it was another thread's
    const int64_t weight = look.cpu - sampled;
    if (weight < least / 2) return;
    const bool timed = thread->timer.load(std::memory_order_relaxed) >= 0;
    if (timed && is_in_a_long_call(&watched->long_call, tid, sampled, look.cpu)) return;
    if (weight < least) return;
    if (!thread->sampled_cpu_ns.compare_exchange_strong(sampled, look.cpu,
                                                        std::memory_order_relaxed))
        return;
    const spool::Ticket ticket = spool::reserve(Kind::cpu, sizeof(CpuRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<CpuRecord*>(ticket.record);
    record->time_ns = look.now;
    record->cpu_ns = weight;
    record->system_ns = -1;
    record->thread = watched->id;
    record->stack = kNone;
    record->gil = static_cast<uint8_t>(Gil::unknown);
    record->origin = static_cast<uint8_t>(Origin::remote);
    record->stack_state = TG_STACK_UNSEEN;
    spool::commit(ticket);
    spool::count(Loss::samples_remote);
}

// Reads the thread's stack and system call. False if the thread ran meanwhile: its CPU clock
// differs before and after, as in a sequence lock.
bool find_place(Thread* thread, Watched* watched, pid_t tid, int64_t cpu, Place* place) {
    kernel::ThreadCpu seen{tid, cpu};
    // This one call sorts out most threads that run, before anything is read from /proc.
    if (!kernel::has_not_run(&seen) || g.walks >= kWalksPerTick) return false;
    ++g.walks;
    place->call = blocked::look(tid);
    place->native = native_path::walk_other({tid, &watched->walk_hint, kernel::has_not_run, &seen},
                                            {place->call.pc, place->call.sp}, &place->walk);
    if (place->call.futex != 0)
        place->call.target =
            recorder().walker.is_gil(watched->walk_hint,
                                     reinterpret_cast<const void*>(place->call.futex))
                ? Target::gil
                : Target::lock;
    if (!kernel::has_not_run(&seen)) return false;
    if (place->walk.state == TG_STACK_TORN) spool::count(Loss::waits_torn);
    if (place->walk.stack != kNone) thread->python.store(true, std::memory_order_relaxed);
    if (place->walk.state == TG_STACK_LOST) spool::count(Loss::stacks_lost);
    return true;
}

void place_wait(Thread* thread, Watched* watched, pid_t tid, Look look, int64_t wall) {
    WaitRecord* record = open_record(watched);
    // The unwind rows of a library that was just loaded may be missing yet: walk again later.
    const bool stood = record && look.cpu == watched->wait.cpu_ns;
    const int looks_left = stood ? watched->wait.looks_left : kLooksAtUnknown;
    if (stood && looks_left == 0) return grow(watched, record, look.now, look.off);
    Place place;
    const bool waited = look.off > wall / 8;
    if (waited || record) g.calm = false;
    const bool stands = waited && find_place(thread, watched, tid, look.cpu, &place);
    if (!stands && stood) return grow(watched, record, look.now, look.off);
    if (!stands) {
        if (record)
            grow(watched, record, look.now, look.off);
        else
            watched->unobserved.add(look.off);
        watched->wait = {};
        return;
    }
    if (record && goes_on(*record, place, look.now)) {
        grow(watched, record, look.now, look.off);
        watched->wait.cpu_ns = look.cpu;
        watched->wait.looks_left = place.native.unknown_code ? looks_left - 1 : 0;
        return;
    }
    if (record && !stood) {
        // It ran in between, at an unknown time: half of the off-CPU time goes to the last span.
        grow(watched, record, look.now - look.off / 2, look.off / 2);
        look.off -= look.off / 2;
    }
    watched->unobserved.placed(look.off, place.call.target);
    watched->wait = write_span(watched->id, place, look);
    watched->wait.looks_left = place.native.unknown_code ? looks_left - 1 : 0;
}

// Threads set their names soon after their start. A name that Python gave takes precedence.
void name_once(Watched* watched, pid_t tid, int64_t now) {
    if (watched->named || now - watched->start_ns < kNameAfterNs) return;
    watched->named = true;
    char name[16];
    const size_t length = blocked::read_name(tid, name, sizeof name);
    threads::write_name(watched->id, false, name, length);
}

void look_at(Thread* thread, Watched* watched, pid_t tid, int64_t now) {
    Look look{now, kernel::clock_ns(kernel::thread_clock(tid)), 0};
    const uint32_t id = thread->id.load(std::memory_order_acquire);
    const int64_t start_ns = thread->start_ns.load(std::memory_order_acquire);
    const int64_t start_cpu_ns = thread->start_cpu_ns.load(std::memory_order_acquire);
    // The slot may be another thread's by now: then what was read is discarded.
    if (thread->tid.load(std::memory_order_acquire) != tid) return;
    if (watched->id != id) {
        *watched = Watched{};
        watched->id = id;
        watched->start_ns = watched->seen_ns = start_ns;
        watched->seen_cpu_ns = start_cpu_ns;
        watched->unobserved.begin(tid);
    }
    if (look.cpu < 0)
        return threads::end(thread, tid, now,
                            watched->seen_cpu_ns);  // it has ended without a hook being called
    const int64_t wall = now - watched->seen_ns;
    if (wall <= 0) return;
    const int64_t ran = look.cpu - watched->seen_cpu_ns;
    look.off = wall > ran ? wall - ran : 0;
    if (recorder().paused.load(std::memory_order_relaxed)) {
        watched->wait = {};
        watched->unobserved.pause();
    } else {
        name_once(watched, tid, now);
        sample_from_outside(thread, watched, tid, look);
        place_wait(thread, watched, tid, look, wall);
        flush_unobserved(watched, tid, look);
    }
    watched->seen_ns = now;
    watched->seen_cpu_ns = look.cpu;
}

// Looks once at each thread. True if nothing changed: each ran all the time, or not at all.
bool tick(int64_t now_ns) {
    if (!recorder().waits) return true;
    g.calm = true;
    __atomic_fetch_add(&spool::control()->wait_ticks, 1, __ATOMIC_RELAXED);
    g.walks = 0;
    const uint32_t high = threads::high_water();
    uint32_t looks = 0;
    for (uint32_t step = 0; step < high && looks < kLooksPerTick; ++step) {
        if (g.cursor >= high) g.cursor = 0;
        const uint32_t index = g.cursor++;
        Thread* thread = threads::at(index);
        const pid_t tid = thread->tid.load(std::memory_order_acquire);
        if (tid <= 0) continue;
        ++looks;
        look_at(thread, &g.watched[index], tid, now_ns);
    }
    return g.calm;
}

// In a forked child, before the threads are forgotten.
void forget() {
    for (uint32_t index = 0; index < threads::high_water(); ++index) g.watched[index] = Watched{};
    g.cursor = 0;
}

// A wait that was seen last has all off-CPU time since then: at a slow pace that may be 60 ms.
void finish() {
    const int64_t now = kernel::monotonic_ns();
    const bool paused = recorder().paused.load(std::memory_order_relaxed);
    for (uint32_t index = 0; index < threads::high_water(); ++index) {
        Watched* watched = &g.watched[index];
        WaitRecord* record = open_record(watched);
        Thread* thread = threads::at(index);
        const pid_t tid = thread->tid.load(std::memory_order_acquire);
        if (record && tid > 0 && !paused) {
            const int64_t ran = kernel::clock_ns(kernel::thread_clock(tid)) - watched->seen_cpu_ns;
            const int64_t off = now - watched->seen_ns - ran;
            if (thread->id.load(std::memory_order_acquire) == watched->id && ran >= 0 && off > 0)
                grow(watched, record, now, off);
        }
        watched->wait = {};
    }
}

constexpr Source kSource{.name = "waits", .tick = tick, .finish = finish, .forget = forget};
TG_REGISTER_SOURCE(kSource);

}  // namespace
}  // namespace tachograph::waits
