"""A seccomp filter that kills at calls which the program does not make: what it does to its memory, to signals, threads
and libraries from then on makes none of them. ``seccomp_hooks.py [stopped]``: the recording may have ended before."""

import ctypes
import mmap
import signal
import struct
import sys
import threading

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = libc.malloc.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.dlopen.restype, libc.dlopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
libc.dlclose.argtypes = [ctypes.c_void_p]
ALLOW, KILL_PROCESS = 0x7FFF0000, 0x80000000
FORBIDDEN = (
    24, 27,  # sched_yield, mincore
    39, 110, 121, 247,  # getpid, getppid, getpgid, waitid
    85, 87, 89, 263, 267,  # creat, unlink, readlink and those of folders
    98, 99,  # getrusage, sysinfo
    200, 234,  # tkill, tgkill
    222, 223, 224, 225, 226,  # timers
    272, 285, 310, 319, 436,  # unshare, fallocate, process_vm_readv, memfd_create, close_range
    228, 229,  # clock_gettime and clock_getres that are system calls
    297, 129,  # rt_tgsigqueueinfo, rt_sigqueueinfo
)  # fmt: skip
LARGE = 256 << 20
PRIVATE_ANONYMOUS_UNRESERVED = 0x4022


def instruction(code: int, jt: int, jf: int, k: int) -> bytes:
    return struct.pack("HBBI", code, jt, jf, k)


def large() -> mmap.mmap:
    found = mmap.mmap(-1, LARGE)
    for at in range(0, LARGE, 1 << 20):
        found[at] = 1
    return found


def reserved() -> int:
    found = libc.mmap(None, LARGE, 3, PRIVATE_ANONYMOUS_UNRESERVED, -1, 0)
    ctypes.memset(found, 1, 1 << 20)
    return int(found)


def allocate() -> None:
    for _ in range(20):
        kept: list[bytearray | str] = [bytearray(5000) for _ in range(2000)]
        kept += [str(number) for number in range(2000)]
        sum(map(len, kept))


early = [large(), large()]
reservations = [reserved() for _ in range(3)]
library = libc.dlopen(b"libm.so.6", 1)
allocate()
program = instruction(0x20, 0, 0, 0)  # the number
for number in FORBIDDEN:
    program += instruction(0x15, 0, 1, number) + instruction(0x06, 0, 0, KILL_PROCESS)
program += instruction(0x06, 0, 0, ALLOW)
buffer = ctypes.create_string_buffer(program)
filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer)))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, filter_, 0, 0) == 0


def say(text: str) -> None:
    print(text, flush=True)


say("munmap")
early.pop().close()
assert libc.munmap(reservations.pop(), LARGE) == 0
say("madvise")
assert libc.madvise(reservations[0], LARGE, 4) == 0
say("mremap")
moved = libc.mremap(reservations.pop(), LARGE, 2 * LARGE, 1)
assert libc.munmap(moved, 2 * LARGE) == 0
say("mmap")
again = large()
again.resize(2 * LARGE)
again.close()
say("malloc")
allocate()
block = libc.malloc(ctypes.c_size_t(64 << 20))
ctypes.memmove(block, block + (8 << 20), 8 << 20)
libc.free(ctypes.c_void_p(block))
say("signals")
for name in ("SIGSEGV", "SIGBUS", "SIGTRAP", "SIGSTKFLT", "SIGUSR1"):
    before = signal.signal(getattr(signal, name), lambda *_: None)
    assert before == signal.SIG_DFL, (name, before)
    signal.signal(getattr(signal, name), before)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP, signal.SIGUSR1])
say("threads")
thread = threading.Thread(target=allocate)
thread.start()
thread.join()
say("libraries")
assert libc.dlclose(library) == 0
say("fork")
for which in (lambda child: child, lambda _: -1, lambda _: 0):
    if (child := libc.fork()) == 0:
        libc._exit(7)
    status = ctypes.c_int()
    assert libc.waitpid(which(child), ctypes.byref(status), 0) == child
    say(f"status {status.value >> 8}")
libc.execv(b"/nowhere", (ctypes.c_char_p * 1)())
say("the end")
