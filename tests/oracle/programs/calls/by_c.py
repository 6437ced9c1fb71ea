"""Functions that are called by C code: keys of a sort, map, reduce, substitutions."""

import functools
import re
import sys

from counts import CALLS


def key(pair: tuple[int, int]) -> int:
    return pair[1]


def double(value: int) -> int:
    return value * 2


def join(left: int, right: int) -> int:
    return left + right


def replace(match: "re.Match[str]") -> str:
    return match.group().upper()


def run(turns: int) -> None:
    pairs = [(i, -i % 97) for i in range(2000)]
    text = "one two three four five six seven eight nine ten " * 20
    for _ in range(turns):
        sorted(pairs, key=key)
        list(map(double, range(3000)))
        functools.reduce(join, range(1500))
        re.sub("t[a-z]+", replace, text)
    CALLS.update(key=2000 * turns, double=3000 * turns, join=1499 * turns, replace=60 * turns)


run(int(sys.argv[1]) if len(sys.argv) > 1 else 6000)
