"""A seccomp filter that kills at every call that makes timers, files or threads; by prctl and by seccomp(2).

With a second argument it stays for some seconds, in which others look at it.
"""

import ctypes
import os
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
ALLOW, KILL_PROCESS = 0x7FFF0000, 0x80000000
FORBIDDEN = (
    2,
    257,  # open, openat
    222,
    223,
    224,
    225,
    226,  # timers
    285,  # fallocate
    87,
    263,  # unlink, unlinkat
    310,  # process_vm_readv
    272,
    436,  # unshare, close_range
    98,  # getrusage
    89,
    267,  # readlink, readlinkat
)


def instruction(code: int, jt: int, jf: int, k: int) -> bytes:
    return struct.pack("HBBI", code, jt, jf, k)


program = instruction(0x20, 0, 0, 0)  # the number
for number in FORBIDDEN:
    program += instruction(0x15, 0, 1, number) + instruction(0x06, 0, 0, KILL_PROCESS)
program += instruction(0x06, 0, 0, ALLOW)


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


burn(0.15)
buffer = ctypes.create_string_buffer(program)
filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer)))
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
sys.stdout.flush()
if sys.argv[1] == "prctl":
    failed = libc.prctl(PR_SET_SECCOMP, 2, filter_, 0, 0)
else:
    libc.syscall.restype = ctypes.c_long
    TSYNC = 1
    failed = libc.syscall(317, 1, TSYNC, filter_)
print("filter", failed, flush=True)
burn(0.3)
if len(sys.argv) > 2:
    time.sleep(4.5)
print("the end", flush=True)
os._exit(3)
