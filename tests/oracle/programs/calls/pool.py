"""A pool of threads that gets small jobs from a queue, and mostly waits."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from counts import CALLS


def price(item: int) -> float:
    return item * 1.19


def total(items: range) -> float:
    return sum(price(item) for item in items)


def job(number: int) -> float:
    time.sleep(0.002)
    value = 0.0
    for start in range(0, 2000, 200):
        value += total(range(start, start + 200))
    return value + number


jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 12_000
with ThreadPoolExecutor(4) as pool:
    list(pool.map(job, range(jobs)))
CALLS.update(job=jobs, total=10 * jobs, price=2000 * jobs)
