"""Lines that touch reserved address space one after the other, as a library's allocator does: in native code that calls
malloc often, in code that never does, and by a thread of the library while the line waits.

Argument 2 is the library (native/allocate.c).
"""

import ctypes
import sys
import time

from library import load
from memory_truth import MemoryTruth

SIZE = 24 << 20
ROUNDS = 4


def main() -> None:
    library = load(sys.argv[2])
    library.oracle_reserve.restype = ctypes.c_void_p
    library.oracle_touch.restype = library.oracle_touch_beside.restype = ctypes.c_int64
    truth = MemoryTruth()
    base = library.oracle_reserve(ctypes.c_size_t(1 << 30))
    size = ctypes.c_size_t(SIZE)
    for _ in range(ROUNDS):
        truth.add("malloc", library.oracle_touch(ctypes.c_void_p(base), size, 20))  # @malloc
        base += SIZE
        truth.add("quiet", library.oracle_touch(ctypes.c_void_p(base), size, 0))  # @quiet
        base += SIZE
        texts = [str(number) for number in range(1000)]
        truth.add("beside", library.oracle_touch_beside(ctypes.c_void_p(base), size))  # @beside
        base += SIZE
        truth.add("after", library.oracle_touch(ctypes.c_void_p(base), size, 0))  # @after
        base += SIZE
    time.sleep(0.3)
    del texts
    truth.write()


if __name__ == "__main__":
    main()
