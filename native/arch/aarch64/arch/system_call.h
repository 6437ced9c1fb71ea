// The kernel's system calls, as the processor makes them.
#pragma once

namespace tachograph::arch {

// The kernel's own function for clocks, in the image that it maps into each process.
inline constexpr char kClockFunction[] = "__kernel_clock_gettime";

// Returns the kernel's result: negative errno on failure.
inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
}

}  // namespace tachograph::arch
