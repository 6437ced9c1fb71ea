"""Bursts of short calls, of very different lengths, between long calls of native code."""

import random
import sys
import zlib

from counts import CALLS

chance = random.Random(7)
block = chance.randbytes(60_000)


def touch(value: int) -> int:
    return value ^ 5


def burst(count: int) -> None:
    for value in range(count):
        touch(value)
    CALLS["touch"] += count


def compress() -> bytes:
    return zlib.compress(block, 1)


for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 150):
    burst(chance.choice([500, 2000, 8000, 20_000]))
    for _ in range(25):
        compress()
    CALLS["burst"] += 1
    CALLS["compress"] += 25
