"""Mostly native: compression and hashing through calls, with a twentieth of the time in a Python loop."""

import ctypes
import hashlib
import zlib

from truth import Clocks, seconds

TEXT = bytes(range(256)) * 128  # 32 KiB
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


def keep_memory() -> None:
    """Have the C library keep what it frees, so that the kernel has little to do: not every sampler sees its time."""
    m_trim_threshold, m_mmap_threshold = -1, -3
    library = ctypes.CDLL(None)
    library.mallopt(m_trim_threshold, 1 << 28)
    library.mallopt(m_mmap_threshold, 1 << 24)


def main() -> None:
    keep_memory()
    clocks = Clocks()
    clocks.cycle(
        seconds(4.0),
        [("compress", compress, 40), ("digest", digest, 60), ("checksum", checksum, 150), ("python", python, 25_000)],
    )
    clocks.write()


if __name__ == "__main__":
    main()
