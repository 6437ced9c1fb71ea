#include "tachograph/guarded_copy.h"

// The last word is copied from its end, and may be copied twice over in part.
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
    .type tachograph_guarded_copy, %function
tachograph_guarded_copy:
    .cfi_startproc
    hint #34
    cmp x2, #8
    b.lo 4f
    cmp x2, #16
    b.lo 2f
    sub x3, x2, #16
    mov x4, #0
1:
tachograph_guarded_copy_pair_at:
    ldr q0, [x1, x4]
    str q0, [x0, x4]
    add x4, x4, #16
    cmp x4, x3
    b.lo 1b
tachograph_guarded_copy_last_pair_at:
    ldr q0, [x1, x3]
    str q0, [x0, x3]
    mov w0, #1
    ret
2:
    add x4, x1, x2
    add x5, x0, x2
tachograph_guarded_copy_word_at:
    ldr x3, [x1]
    str x3, [x0]
tachograph_guarded_copy_last_word_at:
    ldur x3, [x4, #-8]
    stur x3, [x5, #-8]
    mov w0, #1
    ret
4:
    cbz x2, 5f
tachograph_guarded_copy_at:
    ldrb w3, [x1], #1
    strb w3, [x0], #1
    subs x2, x2, #1
    b.ne tachograph_guarded_copy_at
5:
    mov w0, #1
    ret
tachograph_guarded_copy_failed:
    mov w0, #0
    ret
    .cfi_endproc
    .size tachograph_guarded_copy, .-tachograph_guarded_copy

    .globl tachograph_guarded_load
    .hidden tachograph_guarded_load
    .globl tachograph_guarded_load_at
    .hidden tachograph_guarded_load_at
    .type tachograph_guarded_load, %function
tachograph_guarded_load:
    .cfi_startproc
    hint #34
tachograph_guarded_load_at:
    ldr x3, [x1]
    str x3, [x0]
    mov w0, #1
    ret
    .cfi_endproc
    .size tachograph_guarded_load, .-tachograph_guarded_load
)");
