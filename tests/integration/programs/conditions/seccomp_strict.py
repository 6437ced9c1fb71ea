"""Seccomp's strict mode: from there on any system call but read, write, exit and sigreturn is the thread's death."""

import ctypes
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)


def burn(seconds: float) -> int:
    end = time.process_time() + seconds
    total = 0
    while time.process_time() < end:
        total += sum(range(500))
    return total


burn(0.15)
print("in the sandbox", flush=True)
PR_SET_SECCOMP, SECCOMP_MODE_STRICT = 22, 1
write, syscall, total = libc.write, libc.syscall, 0
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0):
    print("refused", ctypes.get_errno())
    sys.exit(0)
for number in range(3_000_000):  # enough CPU time for many samples, with no system call in it
    total += number & 7
write(1, b"the end\n", 8)
syscall(60, 5)  # exit, not exit_group
