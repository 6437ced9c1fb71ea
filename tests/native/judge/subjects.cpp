// Code whose stacks are hard to walk: built with exceptions, and without frame pointers.
#include <alloca.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#define SUBJECT extern "C" __attribute__((visibility("default")))
#define APART __attribute__((noinline, noclone))

namespace {

volatile int g_sink = 0;

// Runs a callback in a frame that is aligned to 64 bytes (the compiler keeps the old stack pointer
// in memory: CFA = *(rbp - x)), of a size that is not known before.
APART void realigned(int depth, int size) {
    alignas(64) volatile double wide[16];
    auto* room = static_cast<char*>(alloca(static_cast<size_t>(size)));
    memset(room, depth, static_cast<size_t>(size));
    for (int i = 0; i < 16; ++i) wide[i] = depth + room[i % size];
    if (depth > 0) realigned(depth - 1, size * 2);
    g_sink = g_sink + static_cast<int>(wide[3]);
}

APART void throws(int depth) {
    const std::string text(static_cast<size_t>(depth) * 20, 'x');
    if (depth == 0) throw std::runtime_error("thrown");
    throws(depth - 1);
    g_sink = g_sink + static_cast<int>(text.size());
}

APART int leaf(int value) {
    g_sink = g_sink + value;
    return value;
}
// A jump, not a call.
APART int tail(int value) { return leaf(value + 1); }
APART int before_tail(int value) { return tail(value * 2) + 1; }

APART void many_registers(int n) {
    int a = n, b = n + 1, c = n + 2, d = n + 3, e = n + 4, f = n + 5;
    for (int i = 0; i < 3; ++i) {
        a += leaf(b);
        b += before_tail(c);
        c += leaf(d);
        d += leaf(e);
        e += leaf(f);
        f += leaf(a);
    }
    g_sink = g_sink + a + b + c + d + e + f;
}

void on_signal(int) { many_registers(2); }

APART void large_frame() {
    volatile char large[3 << 20];
    large[0] = 1;
    large[sizeof large - 1] = static_cast<char>(leaf(3));
}

}  // namespace

SUBJECT void subject_realigned() { realigned(4, 24); }

SUBJECT void subject_exceptions() {
    for (int depth = 0; depth < 3; ++depth) {
        try {
            throws(depth);
        } catch (const std::exception& error) {
            g_sink = g_sink + error.what()[0];
        }
    }
}

SUBJECT void subject_tail_calls() {
    for (int i = 0; i < 5; ++i) before_tail(i);
    many_registers(1);
}

SUBJECT void subject_signals() {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, nullptr);
    raise(SIGUSR1);
}

SUBJECT void subject_library() {
    std::vector<int> numbers(60);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i * 37 % 61);
    std::sort(numbers.begin(), numbers.end());
    qsort(numbers.data(), numbers.size(), sizeof(int), [](const void* a, const void* b) {
        return *static_cast<const int*>(b) - *static_cast<const int*>(a);
    });
    char text[100];
    snprintf(text, sizeof text, "%g %s %d", 1.0 / 3, "text", numbers[5]);
    const std::function<int(int)> function = [&](int value) { return leaf(value) + numbers[0]; };
    g_sink = g_sink + function(4) + static_cast<int>(strlen(text));
    large_frame();
}

#if defined(__x86_64__)
// A kernel without unwind rows, as OpenBLAS has them: it keeps the old stack pointer in rbx and
// aligns its own to a page, above words that look like return addresses.
extern "C" void tachograph_kernel(void (*callback)());
__asm__(R"(
    .text
    .type tachograph_kernel, @function
tachograph_kernel:
    pushq %rbx
    pushq %rbp
    movq %rsp, %rbx
    subq $8192, %rsp
    andq $-4096, %rsp
    xorl %ebp, %ebp
    nop
    nop
    call *%rdi
    nop
    nop
    movq %rbx, %rsp
    popq %rbp
    popq %rbx
    ret
    .size tachograph_kernel, .-tachograph_kernel
)");

SUBJECT APART void subject_without_rows() {
    many_registers(1);
    tachograph_kernel([] { leaf(7); });
    g_sink = g_sink + 1;
}
#endif

#if defined(__aarch64__)
// Calls back in a frame that its caller made, at the caller's stack pointer: nothing is between its
// own stack pointer and the CFA, where the return address is. libffi from 3.4.6 on calls so.
extern "C" void tachograph_lent_frame(void (*callback)(), void* frame);
__asm__(R"(
    .text
    .type tachograph_lent_frame, %function
tachograph_lent_frame:
    .cfi_startproc
    stp x29, x30, [x1]
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, x1
    .cfi_def_cfa_register x29
    blr x0
    ldp x29, x30, [x29]
    .cfi_def_cfa_register sp
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size tachograph_lent_frame, .-tachograph_lent_frame
)");

SUBJECT APART void subject_lent_frame() {
    void* frame = alloca(48);
    tachograph_lent_frame(
        [] {
            for (int i = 0; i < 100; ++i) many_registers(i);
        },
        frame);
    g_sink = g_sink + 1;
}
#endif
