"""A known part of the CPU time in the kernel: large reads of /dev/zero into one buffer, beside a Python loop."""

import os

from truth import Clocks, seconds

BUFFER = bytearray(16 << 20)
ZERO = os.open("/dev/zero", os.O_RDONLY)


def reading(rounds: int) -> None:
    for _ in range(rounds):
        os.readv(ZERO, [BUFFER])  # @reading


def python(rounds: int) -> int:
    total = 0
    for index in range(rounds):  # @python
        total += index & 3  # @python
    return total


def main() -> None:
    clocks = Clocks()
    reading(1)  # the buffer's pages are touched before the clocks run
    clocks.cycle(seconds(3.2), [("reading", reading, 12), ("python", python, 300_000)])
    clocks.write()


if __name__ == "__main__":
    main()
