"""The pace of programs that leak, or do not: a known number of bytes per second, by the clock."""

import time
from collections.abc import Iterator

RATE = 20_000_000
"""Bytes per second."""
STEP_S = 0.005


def pieces(seconds: float, size: int, rate: float = RATE) -> Iterator[int]:
    """Numbers from 0: as many, by now, as make ``rate`` bytes per second of pieces of ``size``, for ``seconds``."""
    begin, number = time.monotonic(), 0
    while (passed := time.monotonic() - begin) < seconds:
        due = int(passed * rate / size)
        for number in range(number, due):
            yield number
        number = max(number, due)
        time.sleep(STEP_S)
