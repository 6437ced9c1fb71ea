"""The first thread ends by itself, in one of two ways; the process ends with the last of its threads, not later."""

import ctypes
import sys
import threading
import time

libc = ctypes.CDLL(None)


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


burn(0.1)
if sys.argv[1] == "raw":
    libc.syscall(60, 7)
libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
thread = ctypes.c_ulong()
print("one thread is left", flush=True)
libc.pthread_create(ctypes.byref(thread), None, ctypes.cast(libc.usleep, ctypes.c_void_p), 200_000)
libc.pthread_exit(None)
