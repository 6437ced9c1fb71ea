// The C library's syscall(), which programs call by name: those that change what may be recorded go
// to tachograph_watched_syscall.

// In assembly, as a call like clone may come back on another stack, where nothing of ours lies.
// 13 is rt_sigaction, 101 ptrace, 126 capset, 157 prctl, 317 seccomp, 446 landlock_restrict_self,
// which all come back on the same stack; all others go straight to the kernel.
__asm__(R"(
    .text
    .globl syscall
    .type syscall, @function
syscall:
    .cfi_startproc
    endbr64
    cmpq $13, %rdi
    je tachograph_watched_syscall
    cmpq $101, %rdi
    je tachograph_watched_syscall
    cmpq $126, %rdi
    je tachograph_watched_syscall
    cmpq $157, %rdi
    je tachograph_watched_syscall
    cmpq $317, %rdi
    je tachograph_watched_syscall
    cmpq $446, %rdi
    je tachograph_watched_syscall
    movq %rdi, %rax
    movq %rsi, %rdi
    movq %rdx, %rsi
    movq %rcx, %rdx
    movq %r8, %r10
    movq %r9, %r8
    movq 8(%rsp), %r9
    syscall
    cmpq $-4095, %rax
    jae 1f
    ret
1:
    movq %rax, %rdi
    jmp tachograph_failed_syscall
    .cfi_endproc
    .size syscall, .-syscall
)");
