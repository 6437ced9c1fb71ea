"""Computes while it takes SIGTRAP for itself, blocks it, forks, is traced, or dies of it:
handle, block, fork, trace, die; and how many rounds of ``block``."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from array import array


def burn(seconds: float) -> int:
    """Native loads and stores below Python lines."""
    numbers, rounds = array("q", range(5000)), 0
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(20):
            numbers = array("q", bytes(numbers))
            numbers.reverse()
            rounds += sum(numbers) > 0
    return rounds


def trace(pid: int, ready: int) -> None:
    """Attaches to a thread as debuggers do, and hands on all of its signals but those that a debugger keeps."""
    ptrace = ctypes.CDLL(None).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    seize, go_on, all_kinds = 0x4206, 7, 0x40000000
    os.write(ready, b"n" if ptrace(seize, pid, None, None) else b"y")
    while True:
        _, status = os.waitpid(pid, all_kinds)
        if not os.WIFSTOPPED(status):
            return
        signal_number = os.WSTOPSIG(status) if status >> 16 == 0 else 0
        ptrace(go_on, pid, None, signal_number)


def watchpoints() -> int:
    """Descriptors of perf_event_open in this process."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            links.append(os.readlink(f"/proc/self/fd/{name}"))
    return sum("perf_event" in link for link in links)


what = sys.argv[1]
burn(0.3)
if what == "handle":
    caught: list[int] = []
    before = signal.signal(signal.SIGTRAP, lambda number, frame: caught.append(number))
    assert before == signal.SIG_DFL, before
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTRAP)
        burn(0.1)
    print(len(caught))
elif what == "fork":
    for _ in range(5):
        child = os.fork()
        if child == 0:
            burn(0.1)
            os._exit(7)
        burn(0.05)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=False).returncode == 0
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])
    burn(0.3)
    print(sorted(signal.sigpending()))
    os.execv(sys.executable, [sys.executable, "-c", "print(sum(range(10**6)))"])
elif what == "block":
    waiting = set()
    for _ in range(int(sys.argv[2])):
        burn(0.02)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])
        burn(0.001)
        waiting |= signal.sigpending()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTRAP])
    print(sorted(waiting))
elif what == "trace":
    read, write = os.pipe()
    parent = os.getpid()
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(2**64 - 1), 0, 0, 0)  # Yama: the child may trace us
    tracer = os.fork()
    if tracer == 0:
        with contextlib.suppress(ChildProcessError):
            trace(parent, write)
        os._exit(0)
    print(os.read(read, 1))
    end = time.monotonic() + 60
    while watchpoints() and time.monotonic() < end:
        burn(0.05)
    print(watchpoints())
else:
    os.kill(os.getpid(), signal.SIGTRAP)
print("done")
