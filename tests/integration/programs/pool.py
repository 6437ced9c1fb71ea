"""Two functions ask a native thread for work, one computes meanwhile and one waits; another thread sleeps."""

import ctypes
import sys
import threading
import time

library = ctypes.CDLL(sys.argv[1])
library.ask.argtypes = [ctypes.c_int64, ctypes.c_int64]
MS = 1_000_000


def asks_and_waits() -> None:
    for _ in range(20):
        library.ask(50 * MS, 0)


def asks_and_computes() -> None:
    for _ in range(20):
        library.ask(50 * MS, 40 * MS)


def sleeps(done: threading.Event) -> None:
    while not done.is_set():
        time.sleep(0.05)


library.start_pool()
done = threading.Event()
sleeper = threading.Thread(target=sleeps, args=(done,))
sleeper.start()
asks_and_waits()
asks_and_computes()
done.set()
sleeper.join()
