"""A child of the program traces it for a moment, as crash reporters do, and it goes on; twice, in both ways."""

import ctypes
import os
import signal
import time

ATTACH, SEIZE, INTERRUPT, CONTINUE, GET_REGISTERS, DETACH = 16, 0x4206, 0x4207, 7, 12, 17
ALL_THREADS, ANY_MAY_TRACE = 0x40000000, 0x59616D61
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


def stopped(pid: int, expected: int) -> None:
    """Waits until it stops as asked; other signals are passed on to it."""
    while True:
        _, status = os.waitpid(pid, ALL_THREADS)
        if os.WSTOPSIG(status) == expected:
            return
        libc.ptrace(CONTINUE, pid, None, os.WSTOPSIG(status))


def trace(pid: int, *, seize: bool) -> int:
    if libc.ptrace(SEIZE if seize else ATTACH, pid, None, None) != 0:
        return 20
    if seize:
        libc.ptrace(INTERRUPT, pid, None, None)
    stopped(pid, signal.SIGTRAP if seize else signal.SIGSTOP)
    registers = ctypes.create_string_buffer(27 * 8)
    seen = libc.ptrace(GET_REGISTERS, pid, None, ctypes.addressof(registers)) == 0
    time.sleep(0.1)
    return 0 if libc.ptrace(DETACH, pid, None, None) == 0 and seen else 21


libc.prctl(ANY_MAY_TRACE, -1)
burn(0.1)
for seize in (False, True):
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        os._exit(trace(parent, seize=seize))
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        burn(0.01)
    print("traced", os.waitstatus_to_exitcode(ended[1]))
burn(0.1)
