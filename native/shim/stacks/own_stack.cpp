#include "stacks/own_stack.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "base/stack_switch.h"
#include "spool/own_memory.h"

#include <atomic>
#include <csignal>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tachograph::own_stack {
namespace {

constexpr uint32_t kStacks = 32;  // one for each bit of `taken`
constexpr size_t kRoom = 60 * 1024;

// Below each: what needs more ends, and writes into no other one.
size_t guard_size() { return pages::size(); }
size_t size() { return pages::round_up(kRoom) + guard_size(); }

struct State {
    uint8_t* stacks = nullptr;
    std::atomic<uint32_t> taken{0};
};
constinit State g;

// Since Linux 6.13 a guard is no mapping of its own.
void guard(uint8_t* at) {
    constexpr long kInstallGuard = 102;  // MADV_GUARD_INSTALL
    const auto bytes = static_cast<long>(guard_size());
    if (kernel::call(SYS_madvise, kernel::address(at), bytes, kInstallGuard) != 0)
        kernel::call(SYS_mprotect, kernel::address(at), bytes, PROT_NONE);
}

}  // namespace

bool open() {
    if (g.stacks) return true;
    if (!own_memory::map(&g.stacks, kStacks * size())) return false;
    for (uint32_t stack = 0; stack < kStacks; ++stack) guard(g.stacks + stack * size());
    return true;
}

bool run(void (*function)(void*), void* argument) {
    if (!g.stacks) return false;
    uint32_t taken = g.taken.load(std::memory_order_relaxed);
    while (taken != ~0u) {
        const int free = __builtin_ctz(~taken);
        if (!g.taken.compare_exchange_weak(taken, taken | 1u << free, std::memory_order_acquire))
            continue;
#if defined(__SANITIZE_THREAD__)
        function(argument);  // ThreadSanitizer keeps a shadow of each stack and is not told of ours
#else
        stack_switch::call_on(g.stacks + static_cast<size_t>(free + 1) * size(), function,
                              argument);
#endif
        g.taken.fetch_and(~(1u << free), std::memory_order_release);
        return true;
    }
    return false;
}

void spare_alternate(const ucontext_t* interrupted) {
    if ((interrupted->uc_stack.ss_flags & SS_DISABLE) != 0) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    kernel::call(SYS_sigaltstack, kernel::address(&none), 0);
}

void forget() {
#if defined(__SANITIZE_ADDRESS__)
    // What other threads of the parent ran there has not returned here.
    if (g.stacks) __asan_unpoison_memory_region(g.stacks, kStacks * size());
#endif
    g.taken.store(0);
}

}  // namespace tachograph::own_stack
