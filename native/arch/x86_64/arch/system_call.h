// The kernel's system calls, as the processor makes them.
#pragma once

namespace tachograph::arch {

// The kernel's own function for clocks, in the image that it maps into each process.
inline constexpr char kClockFunction[] = "__vdso_clock_gettime";

// Returns the kernel's result: negative errno on failure.
inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

}  // namespace tachograph::arch
