"""Memory that is allocated and touched in part, not at all, or later.

What the program holds is most before it drops ``filled``; what it has touched is most when it has touched ``later``.
"""

import ctypes
import time

from memory_truth import MemoryTruth, looked

MB = 1 << 20
MAPPING = 24 * MB
"""Bytes: a larger mapping has its pages counted one by one."""
PRIVATE_ANONYMOUS, READ_WRITE = 0x22, 3
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.calloc.restype = libc.mmap.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def main() -> None:
    truth = MemoryTruth()
    untouched = libc.malloc(1024 * MB)  # @untouched
    zeros = libc.calloc(256, MB)  # @zeros
    half = libc.malloc(512 * MB)  # @half
    later = [libc.mmap(None, MAPPING, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0) for _ in range(8)]  # @later
    ctypes.memset(half, 1, 256 * MB)
    filled = libc.malloc(128 * MB)  # @filled
    ctypes.memset(filled, 1, 128 * MB)
    looked()
    libc.free(filled)
    looked()
    before = time.monotonic_ns()
    for address in later:
        ctypes.memset(address, 1, MAPPING)
    looked()
    truth.facts["touched"] = [before, time.monotonic_ns()]
    for address in later:
        libc.munmap(address, MAPPING)
    time.sleep(0.4)
    libc.free(half)
    libc.free(zeros)
    libc.free(untouched)
    truth.sizes = {"untouched": 0, "zeros": 0, "half": 256 * MB, "filled": 0, "later": 8 * MAPPING}
    truth.write()


if __name__ == "__main__":
    main()
