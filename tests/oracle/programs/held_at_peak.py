"""Memory whose holders at the peak are known by line: blocks that grow, shrink, move, change hands, or go before the end.

Argument 2 says which kind; its function calls ``full`` when it holds what it says, the most of the run. With ``traced``
after it the sizes are what tracemalloc says then, and not those that the function knows.
"""

import array
import ctypes
import functools
import queue
import sys
import threading
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from memory_truth import MemoryTruth, fence

MB = 1 << 20
LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = LIBC.realloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
LIBC.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]
TRUTH = MemoryTruth()


def begin() -> None:
    TRUTH.facts["begun_ns"] = fence()


def filled(place: int, size: int) -> int:
    ctypes.memset(place, 1, size)
    return place


def full(**sizes: int) -> None:
    if not tracemalloc.is_tracing():
        TRUTH.sizes = {name.replace("_", "-"): size for name, size in sizes.items()}
        return
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    for one in tracemalloc.take_snapshot().statistics("lineno"):
        line = lines[one.traceback[0].lineno - 1] if one.traceback[0].filename == __file__ else ""
        if "# @" in line:
            TRUTH.add(line.partition("# @")[2], one.size)


def extended() -> None:
    """list.extend, array.extend, bytearray += and str +=."""
    numbers = [number + 1000 for number in range(10_000)]
    slots: list[int] = []
    for _ in range(300):
        slots.extend(numbers)  # @list-extend
    values = array.array("q")
    for _ in range(250):
        values.extend(numbers)  # @array-extend
    octets = bytearray()
    for _ in range(400):
        octets += bytes(50_000)  # @bytearray
    text = ""
    for _ in range(300):
        text += "\u4e00" * 40_000  # @text
    beside = bytearray(60 * MB)  # @beside
    full()
    del beside


def shrunk() -> None:
    """Blocks that one line makes and another makes smaller: large ones, and some below the size that is exact."""
    large = [filled(LIBC.malloc(4 * MB), 4 * MB) for _ in range(20)]
    for at in range(20):
        large[at] = LIBC.realloc(large[at], MB)  # @shrunk-large
    little = [filled(LIBC.malloc(100_000), 100_000) for _ in range(600)]
    for at in range(600):
        little[at] = LIBC.realloc(little[at], 60_000)  # @shrunk-little
    beside = bytearray(90 * MB)  # @beside
    full(shrunk_large=20 * MB, shrunk_little=600 * 60_000, beside=len(beside))
    for each in large + little:
        LIBC.free(each)


def moved() -> None:
    """Mappings of malloc's that mremap makes larger, by two lines in turns."""
    one = filled(LIBC.malloc(16 * MB), 16 * MB)
    other = filled(LIBC.malloc(16 * MB), 16 * MB)
    for step in range(2, 12):
        one = filled(LIBC.realloc(one, step * 16 * MB), step * 16 * MB)  # @moved-one
        other = filled(LIBC.realloc(other, step * 8 * MB), step * 8 * MB)  # @moved-other
    full(moved_one=176 * MB, moved_other=88 * MB)
    LIBC.free(one)
    LIBC.free(other)


def in_threads(*works: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def elsewhere() -> None:
    """Blocks of the first thread that four others make larger, step by step, and one more makes smaller."""
    places = [filled(LIBC.malloc(200_000), 200_000) for _ in range(80)]

    def grow(first: int) -> None:
        for size in range(300_000, 1_600_000, 100_000):
            for at in range(first, 80, 4):
                places[at] = filled(LIBC.realloc(places[at], size), size)  # @grown-elsewhere

    def shrink() -> None:
        for at in range(0, 80, 2):
            places[at] = LIBC.realloc(places[at], 700_000)  # @shrunk-elsewhere

    in_threads(*(functools.partial(grow, first) for first in range(4)))
    in_threads(shrink)
    beside = bytearray(100 * MB)  # @beside
    full(grown_elsewhere=40 * 1_500_000, shrunk_elsewhere=40 * 700_000, beside=len(beside))
    for each in places:
        LIBC.free(each)


def handed_over() -> None:
    """Threads make blocks; others keep a third of them, copy a third and drop a third."""
    todo: queue.Queue[tuple[int, bytes] | None] = queue.Queue(20)
    kept: list[bytes] = []
    copies: list[bytearray] = []

    def make() -> None:
        for number in range(300):
            todo.put((number, b"x" * 250_000))  # @made

    def take() -> None:
        while (item := todo.get()) is not None:
            if item[0] % 3 == 0:
                kept.append(item[1])
            elif item[0] % 3 == 1:
                copies.append(bytearray(item[1]))  # @copied

    takers = [threading.Thread(target=take) for _ in range(2)]
    for thread in takers:
        thread.start()
    in_threads(make, make, make)
    for thread in takers:
        todo.put(None)
    for thread in takers:
        thread.join()
    beside = bytearray(60 * MB)  # @beside
    full(made=300 * 250_000, copied=300 * 250_000, beside=len(beside))


def two_lines() -> None:
    """Two lines hold the peak, while a third makes and drops as much every moment."""
    first, second = [], []
    for number in range(150):
        first.append(b"x" * 600_000)  # @sixty
        second.append(b"x" * 400_000)  # @forty
        for _ in range(4):
            len(b"x" * (number * 1000 + 1_000))  # @dropped
    full(sixty=90_000_000, forty=60_000_000, dropped=0)


def generated() -> None:
    """A generator makes blocks, another makes them larger, and the last forty are kept."""

    def blocks() -> Iterator[bytes]:
        for number in range(200):
            yield b"x" * (1_000_000 + number % 2)  # @generated

    def doubled() -> Iterator[bytes]:
        for block in blocks():
            yield block * 2  # @doubled

    window: deque[bytes] = deque(maxlen=40)
    parts = []
    for number, block in enumerate(doubled()):
        window.append(block)
        if number % 4 == 0:
            parts.append(block[: 1 << 19])  # @part
    beside = bytearray(60 * MB)  # @beside
    full(doubled=40 * 2_000_001, part=50 << 19, beside=len(beside))


def cached() -> None:
    """An lru_cache that is full, and a dict that is emptied by half whenever it has 500."""

    @functools.lru_cache(maxsize=200)
    def compute(key: int) -> bytes:
        return b"x" * (300_000 + key)  # @lru

    entries: dict[int, bytes] = {}
    for number in range(1490):
        compute(number % 400)
        entries[number] = b"y" * (100_000 + number)  # @bounded
        if len(entries) == 500:
            for key in list(entries)[:250]:
                del entries[key]
    beside = bytearray(60 * MB)  # @beside
    full(lru=200 * 300_200, bounded=sum(map(len, entries.values())), beside=len(beside))


def appended() -> None:
    """np.append in a loop: at the peak the new array stands beside the old one and the piece."""
    import numpy as np

    np.append(np.ones(10), np.ones(10))
    begin()
    grown = np.ones(1 << 20)
    for _ in range(9):
        grown = np.append(grown, np.ones(1 << 20))  # @append
    full(append=20 << 23)
    other = np.resize(np.ones(1 << 18), 5 << 20)  # @resize
    del other


def concatenated() -> None:
    """pandas.concat in a loop: at the peak the new frame stands beside the old one."""
    import numpy as np
    import pandas as pd

    pd.concat([pd.DataFrame({"a": np.ones(10)})] * 2, ignore_index=True)
    begin()
    frame = pd.DataFrame({name: np.ones(200_000) for name in "abcd"})
    piece = frame.copy()  # @piece
    for _ in range(14):
        frame = pd.concat([frame, piece], ignore_index=True)  # @concat
    full(concat=(14 + 15) * 4 * 200_000 * 8, piece=4 * 200_000 * 8)


def tables() -> None:
    """A dict, a set and a deque that have grown, with keys of another line."""
    keys = [number * 3 + 1000 for number in range(2_000_000)]  # @keys
    entries: dict[int, int] = {}
    for key in keys:
        entries[key] = key  # @dict
    members: set[int] = set()
    for key in keys:
        members.add(key)  # @set
    row: deque[int] = deque()
    row.extend(keys)  # @deque
    beside = bytearray(200 * MB)  # @beside
    full()
    del entries, members, row, beside


def small() -> None:
    """Small objects of five lines."""
    count = 1_500_000
    floats = [number + 0.5 for number in range(count)]  # @floats
    strings = [str(number + 10_000_000) for number in range(count)]  # @strings
    pairs = [(value,) for value in floats]  # @tuples
    lists = [[value] for value in floats[: count // 2]]  # @lists
    sets = [{value} for value in floats[: count // 6]]  # @sets
    full()
    del strings, pairs, lists, sets


KINDS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        extended,
        shrunk,
        moved,
        elsewhere,
        handed_over,
        two_lines,
        generated,
        cached,
        appended,
        concatenated,
        tables,
        small,
    )
}


def most_resident() -> int:
    """What the kernel says was the most."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def main() -> None:
    if "traced" in sys.argv[3:]:
        tracemalloc.start()
    begin()
    KINDS[sys.argv[2]]()
    TRUTH.facts["kind"] = sys.argv[2]
    TRUTH.facts["most_resident"] = most_resident()
    TRUTH.write()


if __name__ == "__main__":
    main()
