#include "stacks/threads.h"

#include "base/kernel.h"
#include "base/kernel_text.h"
#include "base/large_data.h"
#include "base/number_pool.h"
#include "spool/layout.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "stacks/sources.h"
#include "tachograph/mixing.h"

#include <pthread.h>
#include <cstring>

// Where the stack of the process began, as the loader found it.
extern "C" void* __libc_stack_end;

namespace tachograph::threads {
namespace {

// Threads without a slot that were counted: the survey meets them again and again. A thread is in
// one of the places that follow its own; where all of them are taken, it may be counted twice.
constexpr uint32_t kMissedPlaces = 16384;
constexpr uint32_t kMissedProbes = 64;

// Where a thread is looked for first, by the last bits of its id: the kernel gives ids in turn, so
// two threads seldom share a place. Where none is counted, none is in any slot.
constexpr uint32_t kPlaces = 65536;
struct Place {
    std::atomic<uint16_t> count;
    std::atomic<uint16_t> slot;  // of the thread that came last
};

struct State {
    Thread* slots = nullptr;
    Place* places = nullptr;
    Numbers<kMostThreads> numbers;  // of the slots
    std::atomic<uint32_t> next_id{0};
    std::atomic<uint32_t> generation{1};
    std::atomic<bool> any_missed{false};
    std::atomic<pid_t> missed[kMissedPlaces] = {};
};
constinit TG_LARGE_DATA State g;

__thread Thread* t_own __attribute__((tls_model("initial-exec"))) = nullptr;
__thread uint32_t t_generation __attribute__((tls_model("initial-exec"))) = 0;

// Marks a slot that is being filled: no kernel thread id is negative.
constexpr pid_t kReserved = -1;

// The kernel maps nothing else so near below the stack of a process.
constexpr size_t kFirstStack = 64 << 20;

void count_missed(pid_t tid) {
    g.any_missed.store(true, std::memory_order_relaxed);
    const uint32_t first = static_cast<uint32_t>(tid) * 2654435761u;
    std::atomic<pid_t>* free = nullptr;
    for (uint32_t probe = 0; probe < kMissedProbes; ++probe) {
        std::atomic<pid_t>* place = &g.missed[(first + probe) % kMissedPlaces];
        const pid_t known = place->load(std::memory_order_relaxed);
        if (known == tid) return;
        if (known == 0 && !free) free = place;
    }
    if (free) free->store(tid, std::memory_order_relaxed);
    spool::count(Loss::threads_missed);
}

Place& place_of(pid_t tid) { return g.places[static_cast<uint32_t>(tid) % kPlaces]; }

void release(Thread* thread, pid_t tid) {
    thread->tid.store(0, std::memory_order_release);
    place_of(tid).count.fetch_sub(1, std::memory_order_release);
    g.numbers.give(slot_of(thread));
}

}  // namespace

bool open() {
    return (g.slots || own_memory::map(&g.slots, sizeof(Thread) * kMostThreads)) &&
           (g.places || own_memory::map(&g.places, sizeof(Place) * kPlaces));
}

Thread* add(pid_t tid, bool main, int64_t time_ns) {
    if (const uint32_t index = g.numbers.take(); index != g.numbers.kNoNumber) {
        Thread& thread = g.slots[index];
        thread.tid.store(kReserved, std::memory_order_relaxed);
        // Released one by one: a thread that reads a new value here finds `tid` changed as well.
        const uint32_t id = g.next_id.fetch_add(1, std::memory_order_relaxed);
        thread.id.store(id, std::memory_order_release);
        thread.start_ns.store(time_ns, std::memory_order_release);
        thread.timer.store(-1, std::memory_order_relaxed);
        const int64_t cpu = kernel::clock_ns(kernel::thread_clock(tid));
        thread.start_cpu_ns.store(cpu, std::memory_order_release);
        thread.sampled_cpu_ns.store(cpu, std::memory_order_release);
        thread.sampled_system_ns = -1;
        thread.target_cpu_ns.store(cpu, std::memory_order_relaxed);
        thread.unrecorded_cpu_ns.store(0, std::memory_order_relaxed);
        thread.traced.store(false, std::memory_order_relaxed);
        thread.blocks.store(false, std::memory_order_relaxed);
        thread.stack_end.store(0, std::memory_order_relaxed);
        thread.python.store(false, std::memory_order_relaxed);
        thread.walk_hint.store(nullptr, std::memory_order_relaxed);
        thread.random = mix(static_cast<uint64_t>(tid) << 32 ^ static_cast<uint64_t>(time_ns));

        const spool::Ticket ticket = spool::reserve(Kind::thread_start, sizeof(ThreadStartRecord));
        if (ticket.record) {
            auto* record = reinterpret_cast<ThreadStartRecord*>(ticket.record);
            record->thread = id;
            record->tid = tid;
            record->time_ns = time_ns;
            record->flags = main ? 1 : 0;
            spool::commit(ticket);
        }
        Place& place = place_of(tid);
        place.slot.store(static_cast<uint16_t>(index), std::memory_order_relaxed);
        place.count.fetch_add(1, std::memory_order_release);
        thread.tid.store(tid, std::memory_order_release);
        return &thread;
    }
    count_missed(tid);
    return nullptr;
}

void end(Thread* thread, pid_t tid, int64_t time_ns, int64_t cpu_ns) {
    pid_t expected = tid;
    if (tid <= 0 ||
        !thread->tid.compare_exchange_strong(expected, kReserved, std::memory_order_acq_rel))
        return;
    // Also where the thread is gone: its timer would stay.
    sources::unwatch(thread);
    // Its clock, or the one that read it last: the caller, or the thread in its last sample.
    const int64_t sampled = thread->sampled_cpu_ns.load(std::memory_order_relaxed);
    const int64_t now = kernel::clock_ns(kernel::thread_clock(tid));
    cpu_ns = now >= 0 ? now : cpu_ns > sampled ? cpu_ns : sampled;
    if (cpu_ns >= 0) {
        const spool::Ticket ticket = spool::reserve(Kind::thread_end, sizeof(ThreadEndRecord));
        if (ticket.record) {
            auto* record = reinterpret_cast<ThreadEndRecord*>(ticket.record);
            record->thread = thread->id;
            record->time_ns = time_ns;
            record->cpu_ns = cpu_ns - thread->start_cpu_ns -
                             thread->unrecorded_cpu_ns.load(std::memory_order_relaxed);
            spool::commit(ticket);
        }
    }
    release(thread, tid);
}

void forget() {
    kernel::clear(g.slots, sizeof(Thread) * kMostThreads);
    kernel::clear(g.places, sizeof(Place) * kPlaces);
    g.numbers.reset();
    g.next_id.store(0);
    g.generation.fetch_add(1);
    if (g.any_missed.exchange(false, std::memory_order_relaxed))
        for (auto& tid : g.missed) tid.store(0, std::memory_order_relaxed);
    t_own = nullptr;
}

void forget_missed_that_ended() {
    if (!g.any_missed.load(std::memory_order_relaxed)) return;
    for (auto& missed : g.missed) {
        pid_t tid = missed.load(std::memory_order_relaxed);
        if (tid != 0 && kernel::clock_ns(kernel::thread_clock(tid)) < 0)
            missed.compare_exchange_strong(tid, 0, std::memory_order_relaxed);
    }
}

void set_stack(Thread* own, const Beginning& beginning) {
    const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
    // The C library keeps what it knows of a thread at the upper end of the stack it gives it.
    auto end = static_cast<uint64_t>(pthread_self());
    size_t size = beginning.stack_size;
    if (size == 0) {
        end = reinterpret_cast<uint64_t>(__libc_stack_end);
        size = kFirstStack;
    }
    if (here >= end || end - here > size) return;
    own->stack_begin.store(end - size, std::memory_order_release);
    for (size_t i = 0; i < kPreserved; ++i)
        own->inherited[i].store(beginning.registers[i], std::memory_order_relaxed);
    own->stack_end.store(end, std::memory_order_release);
}

void write_origin(uint32_t id, uint32_t creator, uint64_t start) {
    const spool::Ticket ticket = spool::reserve(Kind::thread_origin, sizeof(ThreadOriginRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<ThreadOriginRecord*>(ticket.record);
    record->thread = id;
    record->creator = creator;
    record->start = start;
    spool::commit(ticket);
}

// What follows a name in a text of the kernel; null where the name is missing.
static const char* value_of(const char* text, const char* name) {
    const char* line = strstr(text, name);
    if (!line) return nullptr;
    line += strlen(name);
    return line + strspn(line, " \t");
}

Status status(pid_t tid, int signal) {
    char path[64] = "/proc/self/task/";
    char digits[16];
    int count = 0;
    for (int rest = tid; rest > 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
    char* at = path + strlen(path);
    while (count > 0) *at++ = digits[--count];
    memcpy(at, "/status", sizeof "/status");
    char text[4096];
    read_text(path, text, sizeof text);
    Status status;
    uint64_t mask = 0;
    if (const char* blocked = value_of(text, "SigBlk:")) read_hexadecimal(blocked, &mask);
    status.blocks = signal > 0 && (mask >> (signal - 1) & 1);
    if (const char* sleeps = value_of(text, "\nvoluntary_ctxt_switches:"))
        read_decimal(sleeps, &status.sleeps);
    return status;
}

void write_name(uint32_t id, bool python, const char* name, size_t length) {
    if (length == 0 || length > 4096) return;
    const spool::Ticket ticket =
        spool::reserve(Kind::thread_name, sizeof(ThreadNameRecord) + length);
    if (!ticket.record) return;
    auto* record = reinterpret_cast<ThreadNameRecord*>(ticket.record);
    record->thread = id;
    record->source = python ? 1 : 2;
    record->name_length = static_cast<uint16_t>(length);
    memcpy(record + 1, name, length);
    spool::commit(ticket);
}

Thread* at(uint32_t index) { return &g.slots[index]; }
uint32_t high_water() { return g.numbers.used(); }

bool any() {
    for (uint32_t index = 0; index < high_water(); ++index)
        if (at(index)->tid.load(std::memory_order_acquire) != 0) return true;
    return false;
}

Thread* find(pid_t tid) {
    if (!g.places) return nullptr;
    const Place& place = place_of(tid);
    if (place.count.load(std::memory_order_acquire) == 0) return nullptr;
    Thread& likely = g.slots[place.slot.load(std::memory_order_relaxed)];
    if (likely.tid.load(std::memory_order_acquire) == tid) return &likely;
    for (uint32_t index = 0; index < high_water(); ++index)
        if (g.slots[index].tid.load(std::memory_order_acquire) == tid) return &g.slots[index];
    return nullptr;
}

uint32_t slot_of(const Thread* thread) { return static_cast<uint32_t>(thread - g.slots); }

bool is_slot(const void* pointer) {
    const auto offset = reinterpret_cast<uintptr_t>(pointer) - reinterpret_cast<uintptr_t>(g.slots);
    return g.slots && offset < sizeof(Thread) * kMostThreads && offset % sizeof(Thread) == 0;
}

uint32_t generation() { return g.generation.load(std::memory_order_relaxed); }

Thread* own() { return t_generation == generation() ? t_own : nullptr; }

void set_own(Thread* thread) {
    t_own = thread;
    t_generation = generation();
}

Thread* current() {
    Thread* added_by_itself = own();
    return added_by_itself ? added_by_itself : find(kernel::gettid());
}

}  // namespace tachograph::threads
