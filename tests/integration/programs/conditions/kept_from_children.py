"""Keeps mappings out of its children, which give them back all the same, as where an object of Python's ends."""

import mmap
import os
import sys
import time


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        [bytearray(5000) for _ in range(100)]


SIZES = (1 << 20, 1 << 22, 1 << 18, 1 << 16, 1 << 20)
burn(0.1)
kept = [mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for size in SIZES]
partly = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for each in kept:
    each[:4] = b"kept"
    each.madvise(mmap.MADV_DONTFORK)
partly.madvise(mmap.MADV_DONTFORK)
partly.madvise(mmap.MADV_DOFORK, 0, 1 << 19)
partly[:4] = b"both"
for _ in range(2):
    child = os.fork()
    if child == 0:
        burn(0.05)
        for each in kept:
            each.close()
        print(partly[:4], flush=True)
        partly.close()
        burn(0.1)
        sys.exit(4)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), [each[:4] for each in kept], flush=True)
