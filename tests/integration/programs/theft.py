"""Two threads ask a pool for work at the same time, whose workers share it; then the main thread asks from the heap."""

import ctypes
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
library.ask.argtypes = [ctypes.c_int, ctypes.c_int64]
library.ask_from_heap.argtypes = [ctypes.c_int64]
MS = 1_000_000


def asks(for_first: int) -> None:
    for _ in range(20):
        library.ask(for_first, 10 * MS)


library.start_pool()
second = threading.Thread(target=asks, args=(0,))
second.start()
asks(1)
second.join()
for _ in range(20):
    library.ask_from_heap(5 * MS)
