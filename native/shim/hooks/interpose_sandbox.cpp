// What a program does to itself that the recorder must get out of the way of: seccomp, ptrace, user
// namespaces. A seccomp filter knows nothing of our system calls and kills the program at the first
// of them; a thread that has itself traced stops at every signal, ours among them, until its tracer
// lets it go on. So recording ends before a filter comes, and a traced thread has no timer.
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

void enter() {
    lifecycle::end_early(EPERM);
    g_entered.store(true);
}

// Libraries ask first what the kernel can do, with arguments that it refuses.
void before_prctl(long option, long mode, long program) {
    if (option != PR_SET_SECCOMP) return;
    if (mode == SECCOMP_MODE_STRICT || (mode == SECCOMP_MODE_FILTER && program != 0)) enter();
}

void before_seccomp(long operation, long flags, long program) {
    if (operation == SECCOMP_SET_MODE_STRICT && flags == 0 && program == 0) enter();
    if (operation == SECCOMP_SET_MODE_FILTER && program != 0) enter();
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
    sandbox::before_prctl(option, b, c);
    const long result = kernel::call(SYS_prctl, option, b, c, d, e);
    if (result >= 0) return static_cast<int>(result);
    errno = static_cast<int>(-result);
    return -1;
}

// A process that enters a user namespace must have one thread.
template <typename F>
int alone(F call) {
    const bool helped = lifecycle::before_lone_call();
    const long result = call();
    if (helped) lifecycle::after_lone_call();
    if (result >= 0) return static_cast<int>(result);
    errno = static_cast<int>(-result);
    return -1;
}

TG_EXPORT int unshare(int flags) {
    if ((flags & CLONE_NEWUSER) != 0)
        return alone([=] { return kernel::call(SYS_unshare, flags); });
    const long result = kernel::call(SYS_unshare, flags);
    if (result >= 0) return 0;
    errno = static_cast<int>(-result);
    return -1;
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

// For what syscall() is called with, and for nothing else of it: see below.
extern "C" __attribute__((visibility("hidden"), used)) void tachograph_before_syscall(long number,
                                                                                      long a,
                                                                                      long b,
                                                                                      long c) {
    if (number == SYS_prctl) sandbox::before_prctl(a, b, c);
    if (number == SYS_seccomp) sandbox::before_seccomp(a, b, c);
    if (number == SYS_ptrace && a == PTRACE_TRACEME) lifecycle::before_trace();
}

extern "C" __attribute__((visibility("hidden"), used)) long tachograph_failed_syscall(long result) {
    errno = static_cast<int>(-result);
    return -1;
}

// In assembly, as a call like clone may come back on another stack, where nothing of ours lies.
// 101 is ptrace, 157 prctl, 317 seccomp; all others go straight to the kernel.
__asm__(R"(
    .text
    .globl syscall
    .type syscall, @function
syscall:
    .cfi_startproc
    endbr64
    cmpq $101, %rdi
    je 2f
    cmpq $157, %rdi
    je 2f
    cmpq $317, %rdi
    je 2f
1:
    movq %rdi, %rax
    movq %rsi, %rdi
    movq %rdx, %rsi
    movq %rcx, %rdx
    movq %r8, %r10
    movq %r9, %r8
    movq 8(%rsp), %r9
    syscall
    cmpq $-4095, %rax
    jae 3f
    ret
2:
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call tachograph_before_syscall
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp 1b
3:
    movq %rax, %rdi
    jmp tachograph_failed_syscall
    .cfi_endproc
    .size syscall, .-syscall
)");
