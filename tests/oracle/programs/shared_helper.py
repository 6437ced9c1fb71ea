"""Two functions that allocate 5 : 2, both through one helper: only the call path tells them apart.

Argument 2 is the size of a block, argument 3 the number of rounds of seven blocks.
"""

import sys

from memory_truth import MemoryTruth

PIECE = int(sys.argv[2])
kept: list[bytearray] = []


def helper(count: int) -> None:
    for _ in range(count):
        kept.append(bytearray(PIECE))  # @shared


def first(truth: MemoryTruth) -> None:
    helper(5)  # @first
    truth.add("first", 5 * PIECE)


def second(truth: MemoryTruth) -> None:
    helper(2)  # @second
    truth.add("second", 2 * PIECE)


def main() -> None:
    truth = MemoryTruth()
    for _ in range(int(sys.argv[3])):
        first(truth)
        second(truth)
    truth.write()


if __name__ == "__main__":
    main()
