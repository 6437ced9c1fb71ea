"""A main thread that waits: in C on a pipe, on a lock, asleep, and in Python's own read. The library is argument 3."""

import ctypes
import os
import sys
import threading
import time

from truth import Clocks, seconds


def main() -> None:
    clocks = Clocks()
    length = seconds(1.0)
    library = ctypes.CDLL(sys.argv[3])
    library.oracle_read.restype = ctypes.c_int64
    library.oracle_read.argtypes = [ctypes.c_int]
    reader, writer = os.pipe()
    lock = threading.Lock()

    def later(delay: float, what: str) -> None:
        time.sleep(delay)
        if what == "pipe":
            os.write(writer, b"x")
        else:
            lock.release()

    def after(delay: float, what: str) -> threading.Thread:
        thread = threading.Thread(target=later, args=(delay, what), name=f"oracle-{what}")
        thread.start()
        return thread

    helper = after(length, "pipe")
    begin = time.monotonic_ns()
    blocked = library.oracle_read(reader)  # @c-read
    clocks.add("c-read", time.monotonic_ns() - begin)
    clocks.facts["c_read_ns"] = blocked
    helper.join()

    helper = after(length, "pipe")
    begin = time.monotonic_ns()
    os.read(reader, 1)  # @os-read
    clocks.add("os-read", time.monotonic_ns() - begin)
    helper.join()

    lock.acquire()
    helper = after(length, "lock")
    begin = time.monotonic_ns()
    lock.acquire()  # @lock
    clocks.add("lock", time.monotonic_ns() - begin)
    helper.join()

    begin = time.monotonic_ns()
    time.sleep(length)  # @sleep
    clocks.add("sleep", time.monotonic_ns() - begin)
    clocks.write()


if __name__ == "__main__":
    main()
