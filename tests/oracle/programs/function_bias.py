"""The paper's experiment (2023 §6.2): the same work inlined and through a function, in a given ratio.

The second argument is the CPU time, the third the share of rounds that the variant with the function call gets.
"""

import sys

from truth import Clocks, seconds


def step(total: int, index: int) -> int:  # @called (a function's first instruction, RESUME, is of this line)
    return (total * 31 + index) & 0xFFFF  # @called


def called(rounds: int) -> int:
    total = 0
    for index in range(rounds):  # @called
        total = step(total, index)  # @called
    return total


def inlined(rounds: int) -> int:
    total = 0
    for index in range(rounds):  # @inlined
        total = (total * 31 + index) & 0xFFFF  # @inlined
    return total


def main() -> None:
    clocks = Clocks()
    share = float(sys.argv[3])
    whole = 300_000
    clocks.cycle(
        seconds(3.0),
        [("called", called, int(whole * share)), ("inlined", inlined, int(whole * (1 - share)))],
    )
    clocks.write()


if __name__ == "__main__":
    main()
