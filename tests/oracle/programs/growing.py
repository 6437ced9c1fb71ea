"""One container that grows until it holds tens of megabytes. Argument 2 says which.

Most go from one block to a larger one by the allocator's realloc. A dict and a set allocate a new block beside the old
one, and hold both while they copy; a deque has many small blocks.
"""

import array
import ctypes
import io
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from memory_truth import MemoryTruth, fence

LIBC = ctypes.CDLL(None)
LIBC.realloc.restype = ctypes.c_void_p
CHUNK = bytes(1 << 20)
CHUNKS = 60


def as_list() -> int:
    grown: list[None] = []
    for _ in range(6_000_000):
        grown.append(None)  # noqa: PERF401  # @grown
    keep(grown)
    return sys.getsizeof(grown)


def as_bytearray() -> int:
    grown = bytearray()
    for _ in range(CHUNKS):
        grown += CHUNK  # @grown
    keep(grown)
    return sys.getsizeof(grown)


def as_array() -> int:
    grown = array.array("d")
    for _ in range(5_000_000):
        grown.append(1.0)  # @grown
    keep(grown)
    return sys.getsizeof(grown)


def as_bytes_io() -> int:
    grown = io.BytesIO()
    for _ in range(CHUNKS):
        grown.write(CHUNK)  # @grown
    keep(grown)
    return sys.getsizeof(grown)


def as_text() -> int:
    grown = ""
    for _ in range(CHUNKS):
        grown += "x" * len(CHUNK)  # @grown
    keep(grown)
    return sys.getsizeof(grown)


def as_numpy() -> int:
    import numpy as np

    grown = np.ones(1 << 17)
    for number in range(2, CHUNKS + 1):
        grown.resize(number << 17, refcheck=False)  # @grown
    keep(grown)
    return grown.nbytes


def as_libc() -> int:
    place = None
    for number in range(1, CHUNKS + 1):
        place = LIBC.realloc(ctypes.c_void_p(place), ctypes.c_size_t(number << 20))  # @grown
        ctypes.memset(place + ((number - 1) << 20), 1, 1 << 20)
    return CHUNKS << 20


STEP, STEPS = 50_000, 2_000


def as_small_steps() -> int:
    place = 0
    for number in range(1, STEPS + 1):
        place = LIBC.realloc(ctypes.c_void_p(place), ctypes.c_size_t(number * STEP))  # @grown
        ctypes.memset(place + (number - 1) * STEP, 1, STEP)
    return STEPS * STEP


def as_turns() -> int:
    """Two blocks, one of which grows twice as fast, and shrinks again now and then."""
    one, other = 0, 0
    for number in range(1, STEPS + 1):
        less = number // 2 if number % 10 == 5 else number
        one = LIBC.realloc(ctypes.c_void_p(one), ctypes.c_size_t(less * STEP))  # @grown
        other = LIBC.realloc(ctypes.c_void_p(other), ctypes.c_size_t(number * STEP // 2))  # @grown
    ctypes.memset(one, 1, STEPS * STEP)
    ctypes.memset(other, 1, STEPS * STEP // 2)
    return STEPS * STEP * 3 // 2


def as_threads() -> int:
    """Four threads, each of which has a bytearray."""

    def work() -> None:
        grown = bytearray()
        for _ in range(4_000):
            grown += CHUNK[:5_000]  # @grown
        keep(grown)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(sys.getsizeof(grown) for grown in kept)


def as_dict() -> int:
    keys = list(range(900_000))
    grown: dict[int, None] = {}
    for key in keys:
        grown[key] = None  # @grown
    keep((keys, grown))
    return sys.getsizeof(grown)


def as_set() -> int:
    keys = list(range(900_000))
    grown: set[int] = set()
    for key in keys:
        grown.add(key)  # @grown
    keep((keys, grown))
    return sys.getsizeof(grown)


def as_deque() -> int:
    grown: deque[None] = deque()
    for _ in range(6_000_000):
        grown.append(None)  # @grown
    keep(grown)
    return sys.getsizeof(grown)


CONTAINERS: dict[str, Callable[[], int]] = {
    "list": as_list,
    "bytearray": as_bytearray,
    "array": as_array,
    "BytesIO": as_bytes_io,
    "str": as_text,
    "numpy": as_numpy,
    "libc": as_libc,
    "small_steps": as_small_steps,
    "turns": as_turns,
    "threads": as_threads,
    "dict": as_dict,
    "set": as_set,
    "deque": as_deque,
}
kept: list[object] = []


def keep(grown: object) -> None:
    kept.append(grown)


def main() -> None:
    truth = MemoryTruth()
    begin = time.monotonic_ns()
    truth.sizes["grown"] = CONTAINERS[sys.argv[2]]()
    truth.windows["growth"] = (begin, time.monotonic_ns())
    truth.facts["small"] = sys.argv[2] == "deque"
    fence()
    truth.write()


if __name__ == "__main__":
    main()
