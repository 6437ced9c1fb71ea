#include "redundancy/slow_strings.h"

#include "base/kernel.h"
#include "redundancy/code_walk.h"
#include "redundancy/decoder.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace tachograph::redundancy::slow_strings {
namespace {

constexpr size_t kBytes = 64 * 1024;
constexpr size_t kPage = 4096;
constexpr int kTrials = 3;

// Parts of the time that are lost: of string instructions, and of the kernel.
constinit std::atomic<double> g_of_strings{0};
constinit std::atomic<double> g_of_kernel{0};

void clear_by_string(char* at, size_t bytes) {
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(0) : "memory");
}

double part_lost(int64_t without_ns, int64_t with_ns) {
    if (without_ns < 0 || with_ns <= without_ns) return 0;
    return 1 - static_cast<double>(without_ns) / static_cast<double>(with_ns);
}

int64_t less(int64_t known, int64_t taken) { return known < 0 ? taken : std::min(known, taken); }

// rep movs and rep stos: those that have a fast way.
bool is_fast_string(const ucontext_t& context) {
    decoder::Instruction next;
    if (!CodeWalk(context.uc_mcontext.gregs).decode(&next) || !next.repeats) return false;
    return next.opcode == 0xA4 || next.opcode == 0xA5 || next.opcode == 0xAA || next.opcode == 0xAB;
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
        kernel::call(SYS_munmap, kernel::address(at), static_cast<long>(kBytes));
        best.pages_ns = less(best.pages_ns, touched_ns - begin_ns);
        best.string_ns = less(best.string_ns, cleared_ns - touched_ns);
    }
    return best;
}

void compare(const Times& without, const Times& with) {
    g_of_strings.store(part_lost(without.string_ns, with.string_ns), std::memory_order_relaxed);
    g_of_kernel.store(part_lost(without.pages_ns, with.pages_ns), std::memory_order_relaxed);
}

int64_t lost_ns(const Sample& sample, int64_t paid_ns) {
    const int64_t system_ns = std::clamp<int64_t>(sample.system_ns - paid_ns, 0, sample.cpu_ns);
    double lost = static_cast<double>(system_ns) * g_of_kernel.load(std::memory_order_relaxed);
    const double of_strings = g_of_strings.load(std::memory_order_relaxed);
    if (of_strings > 0 && is_fast_string(*sample.context))
        lost += static_cast<double>(sample.cpu_ns - system_ns) * of_strings;
    return static_cast<int64_t>(lost);
}

}  // namespace tachograph::redundancy::slow_strings
