// dlsym(): see import_tables.cpp.

// In assembly, as dlsym asks who has called it. It goes on there with the stack as it was.
__asm__(R"(
    .text
    .hidden tachograph_dlsym
    .globl tachograph_dlsym
    .type tachograph_dlsym, @function
tachograph_dlsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call tachograph_before_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    jne 1f
    jmp *tachograph_real_dlsym(%rip)
1:
    ret
    .cfi_endproc
    .size tachograph_dlsym, .-tachograph_dlsym
)");
