"""Threads of different work, each with functions of its own, while the main thread waits for them."""

import sys
import threading

from counts import CALLS


def weigh(value: int) -> int:
    return value * 3 + 1


def measure(value: int) -> int:
    return value - 1


def sum_up(count: int) -> int:
    return sum(range(count))


def scan(text: str) -> int:
    return text.find("z")


def weighing(turns: int) -> None:
    total = 0
    for _ in range(turns):
        for value in range(100):
            total += weigh(value)


def measuring(turns: int) -> None:
    for _ in range(turns):
        for value in range(40):
            measure(value)
        sum_up(3000)


def scanning(turns: int) -> None:
    text = "a" * 500
    for _ in range(turns):
        for _ in range(10):
            scan(text)
        sum_up(200)


turns = int(sys.argv[1]) if len(sys.argv) > 1 else 150_000
parts = ((weighing, turns), (measuring, turns // 8), (scanning, turns // 2))
threads = [threading.Thread(target=target, args=(count,)) for target, count in parts]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
CALLS.update(weigh=100 * turns, measure=40 * (turns // 8), sum_up=turns // 8 + turns // 2, scan=10 * (turns // 2))
