"""System calls that take long in the kernel, each many intervals of sampling, beside a Python loop."""

import os

from truth import Clocks, seconds

SIZE = 128 << 20
BUFFER = bytearray(SIZE)


def reading(rounds: int) -> None:
    for _ in range(rounds):
        os.preadv(FILE, [BUFFER], 0)  # @reading


def python(rounds: int) -> int:
    total = 0
    for index in range(rounds):  # @python
        total += index & 3  # @python
    return total


FILE = os.memfd_create("zeros")


def main() -> None:
    clocks = Clocks()
    os.pwrite(FILE, BUFFER, 0)
    os.preadv(FILE, [BUFFER], 0)  # all pages are there before the clocks run
    clocks.cycle(seconds(2.0), [("reading", reading, 2), ("python", python, 1_000_000)])
    clocks.write()


if __name__ == "__main__":
    main()
