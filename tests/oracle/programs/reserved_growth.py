"""One call of native code, without the GIL, that touches ever more of reserved address space, for some seconds.

Argument 2 is the library (native/allocate.c).
"""

import ctypes
import sys

from library import load
from memory_truth import MemoryTruth

SIZE, SECONDS = 3 << 28, 2.5
"""Bytes, and seconds: longer than the recorder waits before it gives up finding a thread for what has grown."""


def main() -> None:
    library = load(sys.argv[2])
    library.oracle_reserve.restype = ctypes.c_void_p
    library.oracle_touch_evenly.restype = ctypes.c_int64
    truth = MemoryTruth()
    base = library.oracle_reserve(ctypes.c_size_t(SIZE))
    size, seconds = ctypes.c_size_t(SIZE), ctypes.c_double(SECONDS)
    truth.add("growth", library.oracle_touch_evenly(ctypes.c_void_p(base), size, seconds))  # @growth
    truth.write()


if __name__ == "__main__":
    main()
