// What a program does to itself that the recorder must get out of the way of, or follow: seccomp,
// ptrace, user namespaces, rights, the time stamp counter, signals by number. A seccomp filter
// knows nothing of our system calls and kills the program at the first of them; a thread that has
// itself traced stops at every signal, ours among them, until its tracer lets it go on. So
// recording ends before a filter comes, and a traced thread has no timer. Rights that the program
// gives up by thread are given up by ours as well.
#include "base/kernel.h"
#include "base/sandbox.h"
#include "hooks/interposed.h"
#include "process/lifecycle.h"

#include <dlfcn.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <cerrno>
#include <cstdarg>

namespace tachograph::sandbox {
namespace {

constexpr long kLandlockRestrictSelf = 446;  // since Linux 5.13, and in no older header

void enter() {
    lifecycle::end_early(EPERM);
    g_entered.store(true);
}

// Libraries ask first what the kernel can do, with arguments that it refuses.
void before_prctl(long option, long mode, long program) {
    if (option == PR_SET_TSC && mode == PR_TSC_SIGSEGV) vdso_clock::avoid_time_stamps();
    if (option != PR_SET_SECCOMP) return;
    if (mode == SECCOMP_MODE_STRICT || (mode == SECCOMP_MODE_FILTER && program != 0)) enter();
}

void before_seccomp(long operation, long flags, long program) {
    if (operation == SECCOMP_SET_MODE_STRICT && flags == 0 && program == 0) enter();
    if (operation == SECCOMP_SET_MODE_FILTER && program != 0) enter();
}

// Whether a call changes what the calling thread alone may do. The C library makes setuid and its
// relatives for all threads, ours too; these it makes for one.
bool changes_rights(long number, long a, long b) {
    if (number == SYS_capset || number == kLandlockRestrictSelf) return true;
    if (number != SYS_prctl) return false;
    return a == PR_SET_NO_NEW_PRIVS || a == PR_SET_SECUREBITS || a == PR_CAPBSET_DROP ||
           (a == PR_CAP_AMBIENT && b != PR_CAP_AMBIENT_IS_SET);
}

// As a C library's function returns it.
long returned(long result) {
    if (result >= 0 || result < -4095) return result;
    errno = static_cast<int>(-result);
    return -1;
}

long watched(long number, long a, long b, long c, long d, long e, long f) {
    if (number == SYS_rt_sigaction) return returned(raw_sigaction(a, b, c, d));
    if (number == SYS_prctl) before_prctl(a, b, c);
    if (number == SYS_seccomp) before_seccomp(a, b, c);
    const bool traced = number == SYS_ptrace && a == PTRACE_TRACEME && lifecycle::before_trace();
    const long result = kernel::call(number, a, b, c, d, e, f);
    if (traced && result != 0) lifecycle::after_failed_trace();
    if (result == 0 && changes_rights(number, a, b)) lifecycle::after_change_of_rights();
    return returned(result);
}

}  // namespace
}  // namespace tachograph::sandbox

using namespace tachograph;

TG_EXPORT int prctl(int option, ...) {
    va_list list;
    va_start(list, option);
    const long b = va_arg(list, long);
    const long c = va_arg(list, long);
    const long d = va_arg(list, long);
    const long e = va_arg(list, long);
    va_end(list);
    return static_cast<int>(sandbox::watched(SYS_prctl, option, b, c, d, e, 0));
}

TG_EXPORT int capset(void* header, const void* data) noexcept {
    return static_cast<int>(
        sandbox::watched(SYS_capset, kernel::address(header), kernel::address(data), 0, 0, 0, 0));
}

// A process that enters a user namespace must have one thread.
template <typename F>
int alone(F call) {
    const bool helped = lifecycle::before_lone_call();
    const long result = call();
    if (helped) lifecycle::after_lone_call();
    return static_cast<int>(sandbox::returned(result));
}

TG_EXPORT int unshare(int flags) {
    if ((flags & CLONE_NEWUSER) != 0)
        return alone([=] { return kernel::call(SYS_unshare, flags); });
    return static_cast<int>(sandbox::returned(kernel::call(SYS_unshare, flags)));
}

TG_EXPORT int setns(int file, int kind) {
    return alone([=] { return kernel::call(SYS_setns, file, kind); });
}

TG_EXPORT long ptrace(enum __ptrace_request request, ...) {
    using Ptrace = long (*)(long, long, long, long);
    static const auto real = reinterpret_cast<Ptrace>(dlsym(RTLD_NEXT, "ptrace"));
    va_list list;
    va_start(list, request);
    const long pid = va_arg(list, long);
    const long address = va_arg(list, long);
    const long data = va_arg(list, long);
    va_end(list);
    const bool traced = request == PTRACE_TRACEME && lifecycle::before_trace();
    const long result = real(request, pid, address, data);
    if (traced && result != 0) lifecycle::after_failed_trace();
    return result;
}

// What syscall() is called for, where it is one of those above.
extern "C" __attribute__((visibility("hidden"), used)) long tachograph_watched_syscall(
    long number, long a, long b, long c, long d, long e, long f) {
    return sandbox::watched(number, a, b, c, d, e, f);
}

extern "C" __attribute__((visibility("hidden"), used)) long tachograph_failed_syscall(long result) {
    errno = static_cast<int>(-result);
    return -1;
}
