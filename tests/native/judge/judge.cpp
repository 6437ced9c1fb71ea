// A library for a Python process: interrupts its threads at random moments, or after every
// instruction, and at each has the unwinder walk the stack. Beside it goes libgcc's full unwinder,
// or, between instructions, a list of the calls that were made and have not returned.
#include "base/fault.h"
#include "base/kernel.h"
#include "base/process_maps.h"
#include "tachograph/mixing.h"
#include "unwind/images.h"
#include "unwind/unwinder.h"

#include <pthread.h>
#include <ucontext.h>
#include <unwind.h>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>

#define JUDGE extern "C" __attribute__((visibility("default")))

using namespace tachograph;

// Where a debugger stops, and walks the stack above the signal's frame itself.
JUDGE __attribute__((noinline)) void judge_looked(const void* sample) {
    __asm__ volatile("" ::"r"(sample) : "memory");
}

namespace {

constexpr uint32_t kMostFrames = 120;
constexpr uint32_t kMostSamples = 20'000;

struct Walked {
    uint32_t count;
    uint64_t pcs[kMostFrames];
    uint64_t cfas[kMostFrames];
};

struct Sample {
    uint32_t path;      // unwind::Path
    uint32_t to_root;   // whether libgcc's walk came to the first frame
    uint32_t misleads;  // whether GCC's rows are wrong at this moment
    Walked ours;
    Walked theirs;
};

Sample* g_samples = nullptr;
std::atomic<uint32_t> g_count{0};
std::atomic<uint32_t> g_misled{0};
std::atomic<bool> g_stop{false};
std::atomic<uint32_t> g_handled{0};
std::atomic<bool> g_busy{false};
char g_buffer[64 * 1024];
pthread_t g_target;
pthread_t g_sender;
uint32_t g_pause_us = 0;
bool g_both = true;
constexpr size_t kEvicting = 512u << 20;  // bytes: more than the largest caches hold
volatile bool g_stepping = false;

// Return addresses, by where they were pushed.
struct Pushed {
    uint64_t at;
    uint64_t address;
};
Pushed g_pushed[4096];
uint32_t g_depth = 0;
uint64_t g_random = 0x9E3779B97F4A7C15ull;

struct Trace {
    Walked* to;
    uint64_t interrupted;
    bool found;
    bool root;
};

_Unwind_Reason_Code on_frame(_Unwind_Context* context, void* argument) {
    auto* trace = static_cast<Trace*>(argument);
    int before = 0;
    const uint64_t ip = _Unwind_GetIPInfo(context, &before);
    if (!trace->found && ip == trace->interrupted && before) trace->found = true;
    if (!trace->found) return _URC_NO_REASON;
    Walked& to = *trace->to;
    if (ip == 0) {
        trace->root = true;
        return _URC_NO_REASON;
    }
    if (to.count == kMostFrames) return _URC_END_OF_STACK;
    // This frame's stack pointer is the CFA of the one before it.
    if (to.count > 0) to.cfas[to.count - 1] = _Unwind_GetCFA(context);
    to.pcs[to.count++] = before ? ip : ip - 1;
    return _URC_NO_REASON;
}

#if defined(__x86_64__)
constexpr greg_t kTrapFlag = 0x100;
uint64_t g_last_pc = 0;
uint64_t g_last_sp = 0;
uint32_t g_every = 1;  // of how many steps one is looked at, at random

// lea -N(%reg),%rsp, of a register from r8 on.
bool lets_go_of_realigned_stack(const uint8_t* code) {
    return code[0] == 0x49 && code[1] == 0x8D && (code[2] & 0xF8) == 0x60;
}

// Whether the rows at a program counter are wrong: at the end of a function that realigns its
// stack, from `lea` over `pop` of a register to `ret` or `jmp`, GCC's still say that the caller's
// rbp is where rbp points, though it is back already. libgcc leaves out a caller there, or follows
// what is no address. `walks.py step:realigned` and `step:numpy` judge these moments, by the calls
// made.
bool misleads(uint64_t pc) {
    constexpr uint64_t kLea = 4;
    constexpr uint64_t kPop = 2;
    const auto* at = reinterpret_cast<const uint8_t*>(pc);
    const bool leaves = at[0] == 0xC3 || at[0] == 0xE9;
    const bool pops = at[0] == 0x41 && (at[1] & 0xF8) == 0x58;
    if (lets_go_of_realigned_stack(at)) return true;
    if ((pops || leaves) && lets_go_of_realigned_stack(at - kLea)) return true;
    const uint8_t* before = at - kPop;
    return leaves && before[0] == 0x41 && (before[1] & 0xF8) == 0x58 &&
           lets_go_of_realigned_stack(before - kLea);
}
#else
bool misleads(uint64_t) { return false; }
#endif

// libgcc reads without care where rows mislead it: its own at the end of a throw, libffi's before
// and after a call. Then it is no judge.
sigjmp_buf g_before_judging;
volatile sig_atomic_t g_judging = 0;
struct sigaction g_guard;  // of our loads

void on_fault(int signal, siginfo_t* info, void* context) {
    if (g_judging != 0) {
        g_judging = 0;
        siglongjmp(g_before_judging, 1);
    }
    g_guard.sa_sigaction(signal, info, context);
}

bool judge_by_libgcc(const ucontext_t* context, Sample* sample) {
    Trace trace{&sample->theirs, arch::pc_of(*context), false, false};
    if (sigsetjmp(g_before_judging, 1) != 0) return false;
    g_judging = 1;
    _Unwind_Backtrace(on_frame, &trace);
    g_judging = 0;
    sample->to_root = trace.root ? 1 : 0;
    return true;
}

void judge_by_calls(uint64_t pc, Sample* sample) {
    Walked& calls = sample->theirs;
    calls.pcs[calls.count++] = pc;
    for (uint32_t i = g_depth; i-- > 0 && calls.count < kMostFrames; ++calls.count) {
        calls.cfas[calls.count - 1] = g_pushed[i].at + 8;
        calls.pcs[calls.count] = g_pushed[i].address - 1;
    }
}

void look(const ucontext_t* context) {
    const uint32_t number = g_count.load();
    if (number >= kMostSamples || g_busy.exchange(true)) return;
    const bool misled = misleads(arch::pc_of(*context));
    if (g_both && !g_stepping && misled) {
        g_misled.fetch_add(1);
        g_busy.store(false);
        return;
    }
    Sample& sample = g_samples[number];
    sample.misleads = misled;
    unwind::Frame frames[kMostFrames];
    uint32_t count = 0;
    bool unknown = false;
    sample.path = static_cast<uint32_t>(
        unwind::walk(unwind::registers_of(*context), frames, kMostFrames, &count, &unknown));
    sample.ours.count = count;
    for (uint32_t i = 0; i < count; ++i) {
        sample.ours.pcs[i] = frames[i].pc;
        sample.ours.cfas[i] = frames[i].cfa;
    }
    if (g_stepping) {
        judge_by_calls(arch::pc_of(*context), &sample);
    } else if (g_both && !judge_by_libgcc(context, &sample)) {
        memset(&sample, 0, sizeof sample);
        g_misled.fetch_add(1);
        g_busy.store(false);
        return;
    }
    g_count.store(number + 1);
    g_busy.store(false);
}

void on_signal(int, siginfo_t*, void* value) {
    const uint32_t before = g_count.load();
    look(static_cast<const ucontext_t*>(value));
    if (g_count.load() > before) judge_looked(&g_samples[before]);
    g_handled.fetch_add(1);
}

#if defined(__x86_64__)
void on_step(int, siginfo_t*, void* value) {
    auto* context = static_cast<ucontext_t*>(value);
    if (!g_stepping) {
        context->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
        return;
    }
    const auto pc = static_cast<uint64_t>(context->uc_mcontext.gregs[REG_RIP]);
    const auto sp = static_cast<uint64_t>(context->uc_mcontext.gregs[REG_RSP]);
    const uint64_t top = *reinterpret_cast<const uint64_t*>(sp);
    constexpr uint64_t kLongestInstruction = 15;
    if (sp == g_last_sp - 8 && top > g_last_pc && top <= g_last_pc + kLongestInstruction)
        g_pushed[g_depth++ % 4096] = {sp, top};
    while (g_depth > 0 && g_pushed[g_depth - 1].at < sp) --g_depth;
    g_last_pc = pc;
    g_last_sp = sp;
    if (next_random(&g_random) % g_every == 0) look(context);
}
#endif

void wait(int64_t ns) {
    const timespec time = kernel::to_timespec(ns);
    kernel::call(SYS_nanosleep, kernel::address(&time), 0);
}

void* send(void*) {
    while (!g_stop.load()) {
        const auto pause = static_cast<int64_t>(next_random(&g_random) % (2 * g_pause_us)) * 1'000;
        wait(pause);
        const uint32_t handled = g_handled.load();
        pthread_kill(g_target, SIGPROF);
        // A debugger stops the program in the handler: what was interrupted goes on before the
        // next.
        while (g_handled.load() == handled && !g_stop.load()) wait(20'000);
    }
    return nullptr;
}

_Unwind_Reason_Code nothing(_Unwind_Context*, void*) { return _URC_END_OF_STACK; }

}  // namespace

// Reads the list of mappings anew, as is done outside of handlers.
JUDGE int judge_refresh() {
    if (!unwind::images::begin()) return -1;
    process_maps::each(
        g_buffer, sizeof g_buffer,
        [](const process_maps::Mapping& mapping, void*) {
            if (mapping.executable) unwind::images::add(mapping);
        },
        nullptr);
    unwind::images::publish();
    return 0;
}

JUDGE int judge_open() {
    _Unwind_Backtrace(nothing, nullptr);
    if (!kernel::map(&g_samples, sizeof(Sample) * kMostSamples) || !unwind::open()) return -1;
    fault::install();
    sigaction(SIGSEGV, nullptr, &g_guard);
    struct sigaction action = g_guard;
    action.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &action, nullptr);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigdelset(&action.sa_mask, SIGSEGV);
    sigdelset(&action.sa_mask, SIGBUS);
    sigaction(SIGPROF, &action, nullptr);
#if defined(__x86_64__)
    action.sa_sigaction = on_step;
    sigaction(SIGTRAP, &action, nullptr);
#endif
    return judge_refresh();
}

// Forgets earlier samples, and interrupts the calling thread every `pause_us` on average until
// judge_stop. libgcc reads without care: not on stacks that a greenlet is switching.
JUDGE void judge_start(uint32_t pause_us, int both) {
    g_both = both != 0;
    memset(g_samples, 0, sizeof(Sample) * g_count.exchange(0));
    g_misled.store(0);
    g_target = pthread_self();
    g_pause_us = pause_us;
    g_stop.store(false);
    pthread_create(&g_sender, nullptr, send, nullptr);
}

// The number of samples that were taken so far.
JUDGE uint32_t judge_count() { return g_count.load(); }

// Moments of which libgcc cannot judge; they are no samples.
JUDGE uint32_t judge_misled() { return g_misled.load(); }

// The number of samples since judge_start.
JUDGE uint32_t judge_stop() {
    g_stop.store(true);
    pthread_join(g_sender, nullptr);
    return g_count.load();
}

#if defined(__x86_64__)
// Forgets earlier samples, and interrupts `body` after each instruction; about one in `every` is
// looked at. The number of samples.
JUDGE uint32_t judge_step(void (*body)(), uint32_t every) {
    memset(g_samples, 0, sizeof(Sample) * g_count.exchange(0));
    g_every = every;
    g_depth = 0;
    g_stepping = true;
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp; pushf; orq $0x100, (%%rsp); popf; lea 128(%%rsp), %%rsp" ::
            : "memory", "cc");
    body();
    g_stepping = false;
    return g_count.load();
}
#endif

JUDGE const Sample* judge_samples() { return g_samples; }

// Nanoseconds of each of `rounds` walks from here, and the frames of the last; with `evict`, out of
// cold caches.
JUDGE void judge_time(uint32_t rounds, int evict, double* times, uint32_t* count) {
    static uint8_t memory[kEvicting];
    const unwind::Registers start = unwind::registers_here();
    unwind::Frame frames[kMostFrames];
    bool unknown = false;
    for (uint32_t round = 0; round < rounds; ++round) {
        if (evict != 0)
            for (size_t i = 0; i < sizeof memory; i += 64)
                memory[i] = static_cast<uint8_t>(memory[i] + round);
        const int64_t begin = kernel::monotonic_ns();
        unwind::walk(start, frames, kMostFrames, count, &unknown);
        times[round] = static_cast<double>(kernel::monotonic_ns() - begin);
    }
}
