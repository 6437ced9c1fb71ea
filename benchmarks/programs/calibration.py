"""Programs of five kinds for the calibration of `tachograph diff`: each does the same work in every run.

    python benchmarks/programs/calibration.py KIND [FACTOR]

FACTOR is how many times as much the one function `changed` of the kind `loops` does (1.05: 5 % more).
"""

import hashlib
import queue
import sys
import threading
import time


def steady(count: int) -> int:
    """A loop in Python."""
    total = 0
    for number in range(count):
        total = (total * 31 + number) & 0xFFFFFF
    return total


def changed(count: int) -> int:
    """The function that has more to do in the changed program."""
    total = 0
    for number in range(count):
        total ^= number * 7 + (total >> 3)
    return total


def loops(factor: float) -> None:
    """CPU in Python: 40 % steady, 60 % in `changed`."""
    for _ in range(40):
        steady(220_000)
        changed(round(300_000 * factor))


def allocation(_: float) -> None:
    """Lists, strings, dictionaries and buffers, some of which are kept."""
    kept = []
    for turn in range(160):
        words = [f"word {number % 977} {turn}" for number in range(25_000)]
        counts: dict[str, int] = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        kept.append(words[: len(words) // 4])
        buffer = bytearray(2_000_000 + 1000 * turn)
        kept.append([str(len(bytes(buffer)))])


def waiting(_: float) -> None:
    """Threads that hand work on through queues, sleep, and hash."""
    tasks: queue.Queue[int | None] = queue.Queue(8)

    def worker() -> None:
        while (task := tasks.get()) is not None:
            time.sleep(0.004)
            hashlib.sha256(bytes(200_000 + task)).digest()
            steady(8_000)

    threads = [threading.Thread(target=worker, name=f"worker {number}") for number in range(3)]
    for thread in threads:
        thread.start()
    for task in range(700):
        tasks.put(task)
    for _thread in threads:
        tasks.put(None)
    for thread in threads:
        thread.join()


def arrays(_: float) -> None:
    """numpy: element-wise operations, sorting, a product of matrices, temporaries."""
    import numpy as np

    random = np.random.default_rng(1)
    values = random.normal(size=400_000)
    matrix = random.normal(size=(180, 180))
    for _turn in range(50):
        ordered = np.sort(values)
        smoothed = np.convolve(ordered, np.ones(9) / 9, "same")
        values = np.where(smoothed > 0, values * 1.0001, values - 0.0001)
        matrix = matrix @ matrix.T / 180
        matrix /= abs(matrix).max()


def imports(_: float) -> None:
    """A short program that imports much and does little."""
    import argparse
    import asyncio
    import decimal
    import email.message
    import http.client
    import json
    import logging
    import unittest
    import xml.dom.minidom

    modules = (argparse, asyncio, decimal, email, http, logging, unittest, xml)
    text = json.dumps([{"name": module.__name__, "value": number} for number, module in enumerate(modules)] * 300)
    for _turn in range(10):
        json.loads(text)


KINDS = {"loops": loops, "allocation": allocation, "waiting": waiting, "arrays": arrays, "imports": imports}


if __name__ == "__main__":
    KINDS[sys.argv[1]](float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
