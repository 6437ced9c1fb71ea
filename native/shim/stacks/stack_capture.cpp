#include "stacks/stack_capture.h"

#include "base/fault.h"
#include "base/kernel.h"
#include "base/safe_read.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/recorder.h"

#include <csignal>

// The linker's marks around this library's own code.
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" const char etext[] __attribute__((visibility("hidden")));

namespace tachograph::stack_capture {
namespace {

// A fault on an alternate stack takes a frame of the kernel's, 3.5 KB and more.
constexpr size_t kSmallStack = 16 * 1024;

}  // namespace

bool fault_gets_through() {
    if (!fault::trusted()) return false;
    uint64_t blocked = 0;
    if (kernel::call(SYS_rt_sigprocmask, SIG_BLOCK, 0, kernel::address(&blocked), sizeof blocked) !=
        0)
        return false;
    if ((blocked & (uint64_t{1} << (SIGSEGV - 1) | uint64_t{1} << (SIGBUS - 1))) != 0) return false;
    stack_t stack{};
    return kernel::call(SYS_sigaltstack, 0, kernel::address(&stack)) == 0 &&
           (stack.ss_flags & SS_ONSTACK) == 0 &&
           ((stack.ss_flags & SS_DISABLE) != 0 || stack.ss_size >= kSmallStack);
}

uint64_t outside_caller(const void* caller) {
    const auto address = reinterpret_cast<uint64_t>(caller);
    return is_ours(address) ? 0 : address;
}

bool is_ours(uint64_t pc) {
    const auto begin = reinterpret_cast<uint64_t>(__ehdr_start);
    return pc - begin < reinterpret_cast<uint64_t>(etext) - begin;
}

void walk(tg_walk* found) { walk(fault_gets_through(), found); }

void walk(bool fault_gets_through, tg_walk* found) {
    const bool before = safe_read::kernel_chosen();
    if (!fault_gets_through) {
        spool::count(Loss::slow_reads);
        safe_read::use_kernel(true);
    }
    recorder().walker.walk_self(found);
    safe_read::use_kernel(before);
    if (found->state == TG_STACK_TORN) spool::count(Loss::stacks_torn);
    if (found->state == TG_STACK_TRUNCATED && !found->shortened)
        spool::count(Loss::stacks_truncated);
    if (found->state == TG_STACK_LOST) spool::count(Loss::stacks_lost);
}

}  // namespace tachograph::stack_capture
