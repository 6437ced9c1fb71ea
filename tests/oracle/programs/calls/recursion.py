"""Recursion over a tree, deep and wide by turns, beside a table that is looked up."""

import sys

from counts import CALLS

TABLE = {number: number % 13 for number in range(1000)}


def look_up(number: int) -> int:
    return TABLE[number % 1000]


def visit(depth: int, width: int) -> int:
    if depth == 0:
        return look_up(width)
    total = 0
    for _ in range(width):
        total += visit(depth - 1, width)
    return total


def chain(length: int) -> int:
    return 0 if length == 0 else 1 + chain(length - 1)


turns = int(sys.argv[1]) if len(sys.argv) > 1 else 500
for _ in range(turns):
    visit(8, 3)  # (3 ** 9 - 1) / 2 calls
    for _ in range(20):
        chain(120)
CALLS.update(visit=9841 * turns, look_up=6561 * turns, chain=20 * 121 * turns)
