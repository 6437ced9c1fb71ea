"""A thread that calls small functions, and now and then another one beside it that compresses without the GIL."""

import random
import sys
import threading
import time
import zlib

from counts import CALLS

BLOB = random.randbytes(200_000)


def weigh(value: int) -> int:
    return value * 3 + 1


def spread(count: int) -> int:
    return sum(weigh(value) for value in range(count))


def compress(stop: threading.Event) -> None:
    while not stop.is_set():
        zlib.compress(BLOB, 6)


turns = int(sys.argv[1]) if len(sys.argv) > 1 else 12
for turn in range(turns):
    stop = threading.Event()
    beside = threading.Thread(target=compress, args=(stop,))
    if turn % 2:
        beside.start()
    for _ in range(4000):
        spread(1000 if turn % 2 else 700)
    stop.set()
    if turn % 2:
        beside.join()
    time.sleep(0.001)
CALLS.update(spread=4000 * turns, weigh=4000 * (1000 * (turns // 2) + 700 * (turns - turns // 2)))
