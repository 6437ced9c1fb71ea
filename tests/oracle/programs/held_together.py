"""Small objects of four lines, built one upon the other, held together for a moment and dropped in one go.

Arguments after the first: how many, and ``traced`` for the truth: what tracemalloc finds on each line while all are held.
"""

import sys
import tracemalloc
from pathlib import Path

from memory_truth import MemoryTruth

COUNT = int(sys.argv[2])
TRACED = "traced" in sys.argv[3:]


def build() -> list[object]:
    dropped = [float(number) for number in range(COUNT)]
    del dropped
    floats = [number + 0.5 for number in range(COUNT)]  # @floats
    strings = [str(number) for number in range(COUNT)]  # @strings
    tuples = [(number, number) for number in range(COUNT)]  # @tuples
    dicts = [{"number": number} for number in range(COUNT // 4)]  # @dicts
    return [floats, strings, tuples, dicts]


def main() -> None:
    truth = MemoryTruth()
    if TRACED:
        tracemalloc.start()
    held = build()
    if TRACED:
        lines = Path(__file__).read_text(encoding="utf-8").splitlines()
        for one in tracemalloc.take_snapshot().statistics("lineno"):
            line = lines[one.traceback[0].lineno - 1] if one.traceback[0].filename == __file__ else ""
            if "# @" in line:
                truth.add(line.partition("# @")[2], one.size)
    del held
    truth.write()


if __name__ == "__main__":
    main()
