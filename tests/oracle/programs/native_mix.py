"""Mostly native: compression and hashing through calls, with a twentieth of the time in a Python loop."""

import hashlib
import zlib

from truth import Clocks, seconds

TEXT = bytes(range(256)) * 128  # 32 KiB: the results fit the heap, so that the kernel has little to do
LARGE = TEXT * 8


def compress(rounds: int) -> None:
    for _ in range(rounds):
        zlib.compress(TEXT, 9)  # @compress


def digest(rounds: int) -> None:
    for _ in range(rounds):
        hashlib.sha256(LARGE)  # @digest


def checksum(rounds: int) -> None:
    for _ in range(rounds):
        zlib.adler32(LARGE)  # @checksum


def python(rounds: int) -> int:
    total = 0
    for index in range(rounds):  # @python
        total += index & 3  # @python
    return total


def main() -> None:
    clocks = Clocks()
    clocks.cycle(
        seconds(5.0),
        [("compress", compress, 40), ("digest", digest, 60), ("checksum", checksum, 150), ("python", python, 40_000)],
    )
    clocks.write()


if __name__ == "__main__":
    main()
