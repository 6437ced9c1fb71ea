"""Calls dialled.c's functions from a line of their own for each share: LIBRARY SECONDS [FUNCTION ...]; none: all."""

import ctypes
import random
import sys
import time
from typing import Any

COUNT = 8000
library = ctypes.CDLL(sys.argv[1])
library.load_all.restype = library.use_and_free.restype = library.load_slowly.restype = ctypes.c_uint64
fresh = 0
Cells = ctypes.Array[ctypes.c_uint64]
Changes = ctypes.Array[ctypes.c_uint8]


def dialled(percent: int) -> tuple[Cells, Changes]:
    """Cells, and which of them change: ``percent`` do not."""
    chosen = set(random.Random(percent).sample(range(COUNT), COUNT * percent // 100))
    return (ctypes.c_uint64 * COUNT)(), (ctypes.c_uint8 * COUNT)(*(number not in chosen for number in range(COUNT)))


def loads(cells: Cells, changes: Changes) -> None:
    library.change(cells, changes, COUNT, ctypes.c_uint64(fresh))
    library.load_all(cells, COUNT)


def stores_40(cells: Cells, changes: Changes) -> None:
    library.store_all(cells, changes, COUNT, ctypes.c_uint64(fresh))


def stores_100(cells: Cells, changes: Changes) -> None:
    library.store_all(cells, changes, COUNT, ctypes.c_uint64(fresh))


def loads_60(*of: Any) -> None:
    loads(*of)


def loads_100(*of: Any) -> None:
    loads(*of)


class Apart:
    """Cells that are met again after so many others, two times of three with the same value."""

    def __init__(self, count: int) -> None:
        self.cells = (ctypes.c_uint64 * count)()
        self.rounds = max(1, 100_000 // count)
        self.round = 1

    def go(self, function: Any) -> None:
        count, rounds = ctypes.c_long(len(self.cells)), ctypes.c_long(self.rounds)
        function(self.cells, count, ctypes.c_uint64(self.round), rounds, ctypes.c_uint(8165))
        self.round += self.rounds


def stored_12(apart: Apart) -> None:
    apart.go(library.renew_often)


def stored_10000(apart: Apart) -> None:
    apart.go(library.renew_often)


def stored_10000000(apart: Apart) -> None:
    apart.go(library.renew_often)


def loaded_12(apart: Apart) -> None:
    apart.go(library.load_often)


def loaded_10000(apart: Apart) -> None:
    apart.go(library.load_often)


def loaded_1000000(apart: Apart) -> None:
    apart.go(library.load_often)


def freed(*_: Any) -> None:
    library.use_and_free(ctypes.c_long(COUNT))


def freed_small(*_: Any) -> None:
    library.load_slowly(bytes(480), ctypes.c_long(60))


def asked(*functions: Any) -> list[Any]:
    return [each for each in functions if each.__name__ in sys.argv[3:] or not sys.argv[3:]]


for function in asked(freed, freed_small, stores_40, stores_100, loads_60, loads_100):
    of = dialled(int(function.__name__.rpartition("_")[2])) if function.__name__[-1].isdigit() else dialled(100)
    # Half of these is in what changes the cells.
    part = 2 if function in (loads_60, loads_100) else 1
    end = time.process_time() + float(sys.argv[2]) * part
    while time.process_time() < end:
        for _ in range(30):
            fresh += 1
            function(*of)
for met in asked(stored_12, stored_10000, stored_10000000, loaded_12, loaded_10000, loaded_1000000):
    apart = Apart(int(met.__name__.rpartition("_")[2]))
    end = time.process_time() + float(sys.argv[2])
    while time.process_time() < end:
        met(apart)
print("done")
