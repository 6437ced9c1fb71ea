"""Pipelines of generators, driven by loops and by built-in functions."""

import sys
from collections.abc import Iterator

from counts import CALLS


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


def odd(values: Iterator[int]) -> Iterator[int]:
    for value in values:
        if value % 2:
            yield mapped(value)


def mapped(value: int) -> int:
    return value * 3


def consume(count: int) -> int:
    total = 0
    for value in odd(numbers(count)):
        total += value
    return total + sum(odd(numbers(count // 2)))


turns = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
for _ in range(turns):
    consume(60)
CALLS.update(consume=turns, odd=2 * turns, numbers=2 * turns, mapped=(30 + 15) * turns)
