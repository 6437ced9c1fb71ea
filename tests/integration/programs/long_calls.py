"""Calls a function that takes some milliseconds, longer than a window of watching; says how long on average."""

import json
import time


def short(number: int) -> int:
    return sum(range(number & 127))


def long() -> int:
    total = 0
    for number in range(2_000):
        total += short(number)
    return total


calls, begin = 0, time.perf_counter()
while time.perf_counter() - begin < 3:
    long()
    calls += 1
print(json.dumps({"long_s": (time.perf_counter() - begin) / calls}))
