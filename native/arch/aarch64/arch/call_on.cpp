#include "tachograph/call_on.h"

// While the other stack is in use, the old pointer is in the frame pointer.
__asm__(R"(
    .text
    .globl tachograph_call_on
    .hidden tachograph_call_on
    .globl tachograph_call_on_other
    .hidden tachograph_call_on_other
    .globl tachograph_call_on_back
    .hidden tachograph_call_on_back
    .type tachograph_call_on, %function
tachograph_call_on:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset 29, -16
    .cfi_offset 30, -8
    mov x29, sp
    .cfi_def_cfa_register 29
    mov sp, x0
tachograph_call_on_other:
    mov x0, x2
    blr x1
    mov sp, x29
tachograph_call_on_back:
    .cfi_def_cfa_register 31
    ldp x29, x30, [sp], #16
    .cfi_restore 29
    .cfi_restore 30
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size tachograph_call_on, .-tachograph_call_on
)");
