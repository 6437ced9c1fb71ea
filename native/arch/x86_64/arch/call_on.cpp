#include "tachograph/call_on.h"

// While the other stack is in use, the old pointer is in a register that the function preserves.
__asm__(R"(
    .text
    .globl tachograph_call_on
    .hidden tachograph_call_on
    .globl tachograph_call_on_other
    .hidden tachograph_call_on_other
    .globl tachograph_call_on_back
    .hidden tachograph_call_on_back
    .type tachograph_call_on, @function
tachograph_call_on:
    .cfi_startproc
    pushq %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset %rbx, -16
    movq %rsp, %rbx
    .cfi_def_cfa_register %rbx
    movq %rdi, %rsp
tachograph_call_on_other:
    movq %rdx, %rdi
    call *%rsi
    movq %rbx, %rsp
tachograph_call_on_back:
    .cfi_def_cfa_register %rsp
    popq %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size tachograph_call_on, .-tachograph_call_on
)");
