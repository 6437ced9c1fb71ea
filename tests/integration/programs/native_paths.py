"""Python that is called by C that is called by Python, in several ways, in two threads: ``native_paths.py CPU_SECONDS``.

A function whose name begins with ``c_`` is called by C, every other one by Python.
"""

import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any


def burn(rounds: int) -> int:
    total = 0
    for number in range(rounds):
        total += number * number
    return total


def c_key(value: int) -> int:
    return -burn(200 + value)


def by_sorting() -> None:
    sorted(range(20), key=c_key)


Compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


def c_compare(left: Any, right: Any) -> int:
    difference: int = left[0] - right[0]
    return burn(100) % 2 + difference


def by_callback() -> None:
    numbers = (ctypes.c_int * 20)(*range(20, 0, -1))
    ctypes.CDLL(None).qsort(numbers, 20, 4, Compare(c_compare))


def c_generate() -> Iterator[int]:
    for number in range(10):
        yield burn(100 + number)


def by_generator() -> None:
    sum(c_generate())


def recursive(depth: int) -> None:
    if depth == 0:
        by_sorting()
    else:
        recursive(depth - 1)


def c_raise(value: int) -> int:
    if value == 7:
        raise ValueError(burn(300))
    return burn(50)


def by_exception() -> None:
    try:
        list(map(c_raise, range(10)))
    except ValueError:
        burn(50)


def work(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        by_sorting()
        by_callback()
        by_generator()
        recursive(10)
        by_exception()
        burn(2000)


thread = threading.Thread(target=work, args=(float(sys.argv[1]),))
thread.start()
work(float(sys.argv[1]))
thread.join()
