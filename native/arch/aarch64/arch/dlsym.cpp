// dlsym(): see import_tables.cpp.

// In assembly, as dlsym asks who has called it. It goes on there with the stack as it was.
__asm__(R"(
    .text
    .hidden tachograph_dlsym
    .globl tachograph_dlsym
    .type tachograph_dlsym, %function
tachograph_dlsym:
    .cfi_startproc
    hint #34
    stp x0, x1, [sp, #-32]!
    .cfi_def_cfa_offset 32
    str x30, [sp, #16]
    .cfi_offset 30, -16
    bl tachograph_before_dlsym
    mov x16, x0
    ldr x30, [sp, #16]
    .cfi_restore 30
    ldp x0, x1, [sp], #32
    .cfi_def_cfa_offset 0
    cbnz x16, 1f
    adrp x16, tachograph_real_dlsym
    ldr x16, [x16, #:lo12:tachograph_real_dlsym]
    br x16
1:
    mov x0, x16
    ret
    .cfi_endproc
    .size tachograph_dlsym, .-tachograph_dlsym
)");
