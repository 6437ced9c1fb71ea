// The C library's syscall(), which programs call by name: those that change what may be recorded go
// to tachograph_watched_syscall.

// In assembly, as a call like clone may come back on another stack, where nothing of ours lies.
// 134 is rt_sigaction, 117 ptrace, 91 capset, 167 prctl, 277 seccomp, 446 landlock_restrict_self,
// which all come back on the same stack; all others go straight to the kernel.
__asm__(R"(
    .text
    .globl syscall
    .type syscall, %function
syscall:
    .cfi_startproc
    hint #34
    cmp x0, #134
    b.eq 2f
    cmp x0, #117
    b.eq 2f
    cmp x0, #91
    b.eq 2f
    cmp x0, #167
    b.eq 2f
    cmp x0, #277
    b.eq 2f
    cmp x0, #446
    b.eq 2f
    mov x8, x0
    mov x0, x1
    mov x1, x2
    mov x2, x3
    mov x3, x4
    mov x4, x5
    mov x5, x6
    svc #0
    cmn x0, #4095
    b.hs 1f
    ret
1:
    b tachograph_failed_syscall
2:
    b tachograph_watched_syscall
    .cfi_endproc
    .size syscall, .-syscall
)");
