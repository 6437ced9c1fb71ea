#include "tachograph/guarded_copy.h"

// What is read of an interpreter is a few words, nearly always, and `rep movsb` takes longer to
// begin than to copy those. The last word is copied from its end, and may be copied twice over in
// part.
__asm__(R"(
    .text
    .globl tachograph_guarded_copy
    .hidden tachograph_guarded_copy
    .globl tachograph_guarded_copy_at
    .hidden tachograph_guarded_copy_at
    .globl tachograph_guarded_copy_word_at
    .hidden tachograph_guarded_copy_word_at
    .globl tachograph_guarded_copy_pair_at
    .hidden tachograph_guarded_copy_pair_at
    .globl tachograph_guarded_copy_last_word_at
    .hidden tachograph_guarded_copy_last_word_at
    .globl tachograph_guarded_copy_last_pair_at
    .hidden tachograph_guarded_copy_last_pair_at
    .globl tachograph_guarded_copy_failed
    .hidden tachograph_guarded_copy_failed
    .type tachograph_guarded_copy, @function
tachograph_guarded_copy:
    .cfi_startproc
    cmpq $8, %rdx
    jb 4f
    cmpq $256, %rdx
    ja 4f
    cmpq $16, %rdx
    jb 2f
    leaq -16(%rdx), %rax
    xorl %ecx, %ecx
1:
tachograph_guarded_copy_pair_at:
    movups (%rsi,%rcx), %xmm0
    movups %xmm0, (%rdi,%rcx)
    addq $16, %rcx
    cmpq %rax, %rcx
    jb 1b
tachograph_guarded_copy_last_pair_at:
    movups (%rsi,%rax), %xmm0
    movups %xmm0, (%rdi,%rax)
    movl $1, %eax
    ret
2:
tachograph_guarded_copy_word_at:
    movq (%rsi), %rax
    movq %rax, (%rdi)
tachograph_guarded_copy_last_word_at:
    movq -8(%rsi,%rdx), %rax
    movq %rax, -8(%rdi,%rdx)
    movl $1, %eax
    ret
4:
    movq %rdx, %rcx
tachograph_guarded_copy_at:
    rep movsb
    movl $1, %eax
    ret
tachograph_guarded_copy_failed:
    xorl %eax, %eax
    ret
    .cfi_endproc
    .size tachograph_guarded_copy, .-tachograph_guarded_copy

    .globl tachograph_guarded_load
    .hidden tachograph_guarded_load
    .globl tachograph_guarded_load_at
    .hidden tachograph_guarded_load_at
    .type tachograph_guarded_load, @function
tachograph_guarded_load:
    .cfi_startproc
tachograph_guarded_load_at:
    movq (%rsi), %rax
    movq %rax, (%rdi)
    movl $1, %eax
    ret
    .cfi_endproc
    .size tachograph_guarded_load, .-tachograph_guarded_load
)");
