"""Calls dialled.c's functions from a line of their own for each share: LIBRARY SECONDS."""

import ctypes
import random
import sys
import time
from typing import Any

COUNT = 8000
library = ctypes.CDLL(sys.argv[1])
library.load_all.restype = library.use_and_free.restype = ctypes.c_uint64
fresh = 0
Cells = ctypes.Array[ctypes.c_uint64]
Changes = ctypes.Array[ctypes.c_uint8]


def dialled(percent: int) -> tuple[Cells, Changes]:
    """Cells, and which of them change: ``percent`` do not."""
    chosen = set(random.Random(percent).sample(range(COUNT), COUNT * percent // 100))
    return (ctypes.c_uint64 * COUNT)(), (ctypes.c_uint8 * COUNT)(*(number not in chosen for number in range(COUNT)))


def stores(cells: Cells, changes: Changes) -> None:
    library.store_all(cells, changes, COUNT, ctypes.c_uint64(fresh))


def loads(cells: Cells, changes: Changes) -> None:
    library.change(cells, changes, COUNT, ctypes.c_uint64(fresh))
    library.load_all(cells, COUNT)


def stores_40(*of: Any) -> None:
    stores(*of)


def stores_100(*of: Any) -> None:
    stores(*of)


def loads_60(*of: Any) -> None:
    loads(*of)


def loads_100(*of: Any) -> None:
    loads(*of)


def freed(*_: Any) -> None:
    library.use_and_free(ctypes.c_long(COUNT))


for function in (freed, stores_40, stores_100, loads_60, loads_100):
    of = dialled(int(function.__name__.partition("_")[2] or 100))
    end = time.process_time() + float(sys.argv[2])
    while time.process_time() < end:
        for _ in range(30):
            fresh += 1
            function(*of)
print("done")
