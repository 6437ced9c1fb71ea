"""Threads that ask a pool of native threads for known amounts of work, and sleep after each call.

``pool_threads.py TRUTH blas|polars|LIBRARY THREADS MILLISECONDS CPU_SECONDS``: each thread calls OpenBLAS, polars (whose
pool is rayon's), or ``team`` of an OpenMP library, on a line of its own. A call takes about so many milliseconds. All
calls are alike: shares of calls are shares of the work.
"""

import ctypes
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

truth, kind = Path(sys.argv[1]), sys.argv[2]
threads, milliseconds, seconds = int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])


def least(call: Callable[[], object]) -> float:
    """Milliseconds of the quickest of four calls: a thread that waits for another spins, and its clock runs on."""
    taken = []
    for _ in range(4):
        began = time.thread_time()
        call()
        taken.append((time.thread_time() - began) * 1e3)
    return min(taken)


if kind == "blas":
    import numpy as np

    size = 100
    while True:
        a = np.full((size, size), 0.5)
        if least(lambda: a @ a) >= milliseconds:
            break
        size = round(size * 1.1)

    def ask() -> None:
        a @ a

elif kind == "polars":
    import polars as pl

    rows = 20_000
    while True:
        table = pl.DataFrame({"x": pl.Series(range(rows)).shuffle(seed=1)})
        table.select(pl.col("x").sort())
        began = time.process_time()
        table.select(pl.col("x").sort())
        if (time.process_time() - began) * 1e3 >= 2 * milliseconds:
            break
        rows = round(rows * 1.3)

    def ask() -> None:
        table.select(pl.col("x").sort())

else:
    team = ctypes.CDLL(kind).team
    team.argtypes = [ctypes.c_int, ctypes.c_int64]
    began = time.thread_time()
    team(1, 1_000_000)
    steps = int(milliseconds / 1e3 / (time.thread_time() - began) * 1e6)

    def ask() -> None:
        team(2, steps)


calls = dict.fromkeys("abcd"[:threads], 0)
end = time.process_time() + seconds


def a_asks() -> None:
    while time.process_time() < end:
        ask()  # @a
        calls["a"] += 1
        time.sleep(0.001)  # @sleep


def b_asks() -> None:
    while time.process_time() < end:
        ask()  # @b
        calls["b"] += 1
        time.sleep(0.02)  # @sleep


def c_asks() -> None:
    while time.process_time() < end:
        ask()  # @c
        calls["c"] += 1
        time.sleep(0.04)  # @sleep


def d_asks() -> None:
    while time.process_time() < end:
        ask()  # @d
        calls["d"] += 1
        time.sleep(0.01)  # @sleep


asking = [threading.Thread(target=function) for function in (a_asks, b_asks, c_asks, d_asks)[:threads]]
for thread in asking:
    thread.start()
for thread in asking:
    thread.join()
truth.write_text(json.dumps(calls), encoding="utf-8")
