"""Python that is called by C that is called by Python, in several ways, in two threads: ``native_paths.py CPU_SECONDS``.

A function whose name begins with ``c_`` is called by C, every other one by Python.
"""

import ctypes
import sys
import threading
import time


def burn(rounds):
    total = 0
    for number in range(rounds):
        total += number * number
    return total


def c_key(value):
    return -burn(200 + value)


def by_sorting():
    sorted(range(20), key=c_key)


Compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


def c_compare(left, right):
    return burn(100) % 2 + left[0] - right[0]


def by_callback():
    numbers = (ctypes.c_int * 20)(*range(20, 0, -1))
    ctypes.CDLL(None).qsort(numbers, 20, 4, Compare(c_compare))


def c_generate():
    for number in range(10):
        yield burn(100 + number)


def by_generator():
    sum(c_generate())


def recursive(depth):
    if depth == 0:
        return by_sorting()
    return recursive(depth - 1)


def c_raise(value):
    if value == 7:
        raise ValueError(burn(300))
    return burn(50)


def by_exception():
    try:
        list(map(c_raise, range(10)))
    except ValueError:
        burn(50)


def work(seconds):
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
