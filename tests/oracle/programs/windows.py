"""A cache without a limit, and temporary blocks: the same in each second, until there are so many windows (argument 2)."""

import sys
import time
from pathlib import Path

from memory_truth import MemoryTruth

KEPT, EVERY, PASSING = 2_000_000, 50, 5_000
"""A kept block is four times what the sampling has one byte of: nearly all are in the sample, so 10 % is a bound."""
CACHE: dict[int, bytearray] = {}


def handle(number: int) -> int:
    if number % EVERY == 0:
        CACHE[number] = bytearray(KEPT)  # @kept
    passing = [bytearray(PASSING) for _ in range(100)]  # @passing
    return len(passing)


def main() -> None:
    truth = MemoryTruth()
    end = time.monotonic() + 100
    folder, windows = Path(sys.argv[1]).parent, 0
    number = 0
    while windows < int(sys.argv[2]) and time.monotonic() < end:
        handle(number)
        number += 1
        time.sleep(0.002)
        if number % 100 == 0:
            windows = len(list(folder.glob("run.0*.tacho")))
    truth.sizes = {"kept": len(CACHE) * KEPT, "passing": number * PASSING * 100}
    truth.write()


if __name__ == "__main__":
    main()
