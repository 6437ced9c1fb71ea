#include "base/stack_switch.h"

extern "C" void tachograph_call_on(void* top, void (*function)(void*), void* argument);
extern "C" const char tachograph_call_on_other[];
extern "C" const char tachograph_call_on_back[];

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

namespace tachograph::stack_switch {

void call_on(void* top, void (*function)(void*), void* argument) {
    tachograph_call_on(top, function, argument);
}

bool holds(uint64_t pc) {
    return pc - reinterpret_cast<uint64_t>(tachograph_call_on_other) <
           static_cast<uint64_t>(tachograph_call_on_back - tachograph_call_on_other);
}

}  // namespace tachograph::stack_switch
