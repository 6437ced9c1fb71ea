"""Phases by turns: many short calls, few long ones, and both mixed."""

import sys

from counts import CALLS


def short(value: int) -> int:
    return value + 1


def middling(count: int) -> int:
    return sum(range(count))


def long(count: int) -> int:
    return sum(i * i for i in range(count))


def run(turns: int) -> None:
    for _ in range(turns):
        for value in range(1_500_000):
            short(value)
        for _ in range(400):
            long(8_000)
        for value in range(60_000):
            short(value)
            middling(100)
        CALLS["short"] += 1_560_000
        CALLS["long"] += 400
        CALLS["middling"] += 60_000


run(int(sys.argv[1]) if len(sys.argv) > 1 else 16)
