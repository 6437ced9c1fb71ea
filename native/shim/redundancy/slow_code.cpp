#include "redundancy/slow_code.h"

#include "base/kernel.h"
#include "redundancy/code_walk.h"
#include "redundancy/decoder.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace tachograph::redundancy::slow_code {
namespace {

using decoder::Instruction;

constexpr size_t kBytes = 64 * 1024;
constexpr size_t kPage = 4096;
constexpr size_t kLine = 64;
constexpr int kTrials = 3;
// Enough to go through a loop over arrays once, and what an instruction of such a loop takes.
constexpr uint32_t kSteps = 24;
constexpr double kStepNs = 1;
// Fewer do not tell how much there is between two stores.
constexpr uint32_t kFewSteps = 8;

// Parts of the time that are lost: of string instructions, and of the kernel.
constinit std::atomic<double> g_of_strings{0};
constinit std::atomic<double> g_of_kernel{0};
// By a store that crosses a cache line.
constinit std::atomic<double> g_by_store_ns{0};

void clear_by_string(char* at, size_t bytes) {
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(0) : "memory");
}

void cross_lines(char* at, size_t bytes) {
    for (size_t line = kLine; line < bytes; line += kLine)
        __asm__ volatile("movq $0, (%0)" : : "r"(at + line - 4) : "memory");
}

double part_lost(double without_ns, double with_ns) {
    return without_ns < 0 || with_ns <= without_ns ? 0 : 1 - without_ns / with_ns;
}

double less(double known, int64_t taken) {
    const auto now = static_cast<double>(taken);
    return known < 0 ? now : std::min(known, now);
}

// rep movs and rep stos: those that have a fast way.
bool is_fast_string(const Instruction& next) {
    if (!next.repeats) return false;
    return next.opcode == 0xA4 || next.opcode == 0xA5 || next.opcode == 0xAA || next.opcode == 0xAB;
}

bool crosses_line(const CodeWalk& walk, const Instruction& next) {
    uint64_t address = 0;
    if (!next.memory.writes || next.memory.width == 0 || !walk.address_of(next, &address))
        return false;
    return address % kLine + next.memory.width > kLine;
}

// The part of the thread's own time that is lost where it was interrupted.
double part_of(const ucontext_t& context) {
    const double of_strings = g_of_strings.load(std::memory_order_relaxed);
    const double by_store_ns = g_by_store_ns.load(std::memory_order_relaxed);
    if (of_strings == 0 && by_store_ns == 0) return 0;
    CodeWalk walk(context.uc_mcontext.gregs, CodeWalk::Loads::none);
    Instruction next;
    uint32_t steps = 0;
    uint32_t crossing = 0;
    while (steps < kSteps && walk.decode(&next)) {
        if (steps == 0 && is_fast_string(next)) return of_strings;
        if (by_store_ns == 0) return 0;
        crossing += crosses_line(walk, next) ? 1 : 0;
        ++steps;
        if (!walk.step(next)) break;
    }
    const double lost_ns = crossing * by_store_ns;
    return lost_ns / (lost_ns + kStepNs * std::max(steps, kFewSteps));
}

}  // namespace

Times measure() {
    Times best;
    for (int trial = 0; trial < kTrials; ++trial) {
        char* at = nullptr;
        if (!kernel::map(&at, kBytes)) return best;
        const int64_t begin_ns = kernel::own_cpu_ns();
        for (size_t page = 0; page < kBytes; page += kPage)
            *static_cast<volatile char*>(at + page) = 1;
        const int64_t touched_ns = kernel::own_cpu_ns();
        clear_by_string(at, kBytes);
        const int64_t cleared_ns = kernel::own_cpu_ns();
        cross_lines(at, kBytes);
        const int64_t crossed_ns = kernel::own_cpu_ns();
        kernel::call(SYS_munmap, kernel::address(at), static_cast<long>(kBytes));
        best.pages_ns = less(best.pages_ns, touched_ns - begin_ns);
        best.string_ns = less(best.string_ns, cleared_ns - touched_ns);
        best.store_ns = less(best.store_ns, (crossed_ns - cleared_ns) / (kBytes / kLine));
    }
    return best;
}

void compare(const Times& without, const Times& with) {
    const double store_ns = without.store_ns < 0 ? 0 : with.store_ns - without.store_ns;
    g_of_strings.store(part_lost(without.string_ns, with.string_ns), std::memory_order_relaxed);
    g_of_kernel.store(part_lost(without.pages_ns, with.pages_ns), std::memory_order_relaxed);
    g_by_store_ns.store(std::max(store_ns, 0.0), std::memory_order_relaxed);
}

int64_t lost_ns(const Sample& sample, int64_t paid_ns) {
    const int64_t system_ns = std::clamp<int64_t>(sample.system_ns - paid_ns, 0, sample.cpu_ns);
    const double lost =
        static_cast<double>(system_ns) * g_of_kernel.load(std::memory_order_relaxed) +
        static_cast<double>(sample.cpu_ns - system_ns) * part_of(*sample.context);
    return static_cast<int64_t>(lost);
}

}  // namespace tachograph::redundancy::slow_code
