"""Containers that grow, and then stay level because entries make room for others; and some that only grow, slowly.

Argument 2 says which.
"""

import array
import functools
import io
import os
import random
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

from memory_truth import MemoryTruth

SECONDS = 6.0
kept: list[object] = []
chance = random.Random(3)


def beats(per_second: int = 400) -> Iterator[int]:
    """So many times a second a number, as the clock goes; a little work in between."""
    begin, number = time.perf_counter(), 0
    while (passed := time.perf_counter() - begin) < SECONDS:
        while number < passed * per_second:
            yield number
            number += 1
        time.sleep(0.002)


def dict_with_a_maximum() -> None:
    entries: dict[int, bytes] = {}
    kept.append(entries)
    for number in beats():
        entries[number] = bytes(40_000)  # @dict_with_a_maximum
        if len(entries) > 600:
            del entries[next(iter(entries))]


def ordered_lru() -> None:
    entries: OrderedDict[int, bytes] = OrderedDict()
    kept.append(entries)
    for _ in beats():
        key = int(chance.expovariate(1 / 2000))
        if key in entries:
            entries.move_to_end(key)
            continue
        entries[key] = bytes(60_000)  # @ordered_lru
        if len(entries) > 500:
            entries.popitem(last=False)


def ring() -> None:
    entries: deque[bytearray] = deque(maxlen=700)
    kept.append(entries)
    for number in beats():
        entries.append(bytearray(40_000 + number % 7 * 1000))  # @ring


class Limited:
    """As many bytes as it may hold, and each entry for as long as it may live."""

    def __init__(self, most: int, seconds: float) -> None:
        self.entries: OrderedDict[int, tuple[float, bytes]] = OrderedDict()
        self.most, self.seconds, self.size = most, seconds, 0

    def __setitem__(self, key: int, value: bytes) -> None:
        now = time.monotonic()
        self.entries[key] = (now, value)
        self.size += len(value)
        while self.size > self.most or now - next(iter(self.entries.values()))[0] > self.seconds:
            self.size -= len(self.entries.popitem(last=False)[1][1])


def limited_time() -> None:
    cache = Limited(25_000_000, 2.5)
    kept.append(cache)
    for number in beats():
        cache[number] = bytes(chance.randrange(1000, 60_000))  # @limited_time


def replaced_at_random() -> None:
    entries: list[bytes] = []
    kept.append(entries)
    for _ in beats():
        value = bytes(50_000)  # @replaced_at_random
        if len(entries) < 800:
            entries.append(value)
        else:
            entries[chance.randrange(len(entries))] = value


def cached_function() -> None:
    @functools.lru_cache(maxsize=400)
    def compute(key: int) -> bytes:
        return bytes(50_000 + key % 3)  # @cached_function

    kept.append(compute)
    for number in beats():
        compute(number * 7919 % 1000)


def emptied_by_half() -> None:
    entries: dict[int, bytes] = {}
    kept.append(entries)
    for number in beats():
        entries[number] = bytes(40_000)  # @emptied_by_half
        if len(entries) == 500:
            for key in list(entries)[:250]:
                del entries[key]


def collected_then_released() -> None:
    """All that a report is made of, until it is made."""
    rows = []
    for number in beats():
        rows.append(bytes(15_000 + number % 7))  # noqa: PERF401  # @collected_then_released
    total = sum(map(len, rows))
    rows.clear()
    assert total
    time.sleep(0.5)


def forked_worker() -> None:
    child = os.fork()
    if child == 0:
        for _ in beats():
            kept.append(bytes(15_000))  # @forked_worker
        time.sleep(0.2)
        os._exit(0)
    os.waitpid(child, 0)


def closures() -> None:
    for number in beats():
        data = list(range(number % 50, number % 50 + 600))  # @closures
        kept.append(lambda data=data: data)


def endless_deque() -> None:
    entries: deque[bytes] = deque()
    kept.append(entries)
    for _ in beats(20):
        entries.append(bytes(200_000))  # @endless_deque


def exceptions() -> None:
    def fail(number: int) -> None:
        local = bytes(12_000)  # @exceptions
        raise ValueError(number, len(local))

    for number in beats():
        try:
            fail(number)
        except ValueError as error:
            kept.append(error)


def log_in_memory() -> None:
    log = io.BytesIO()
    kept.append(log)
    for _ in beats():
        log.write(b"z" * 12_000)  # @log_in_memory


def numbers() -> None:
    values = array.array("d")
    kept.append(values)
    for _ in beats():
        values.extend([1.0] * 1500)  # @numbers


PROGRAMS: dict[str, Callable[[], Any]] = {
    each.__name__: each
    for each in (
        dict_with_a_maximum,
        ordered_lru,
        ring,
        limited_time,
        replaced_at_random,
        cached_function,
        emptied_by_half,
        collected_then_released,
        forked_worker,
        closures,
        endless_deque,
        exceptions,
        log_in_memory,
        numbers,
    )
}


def main() -> None:
    truth = MemoryTruth()
    PROGRAMS[sys.argv[2]]()
    truth.write()


if __name__ == "__main__":
    main()
