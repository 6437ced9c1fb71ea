"""Calls a function that does nothing but Python, for so many seconds; says how long it took, and how many calls."""

import json
import sys
import time


def work() -> int:
    total = 0
    for number in range(400):
        if number & 3:
            total += number * 3
    return total


def outer() -> int:
    return work() + work()


calls, begin = 0, time.perf_counter()
while time.perf_counter() - begin < float(sys.argv[1]):
    for _ in range(100):
        outer()
    calls += 100
print(json.dumps({"outer_s": (time.perf_counter() - begin) / calls, "calls": calls}))
