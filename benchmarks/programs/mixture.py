"""Python code and native code by turns, so much of each: how much of the time is native?

python mixture.py PYTHON NATIVE REPORT     # passes of each; writes the CPU seconds of each as JSON
"""

import zlib

from turns import take_turns  # type: ignore[import-not-found]  # beside this program when it runs

BLOCK = bytes(range(256)) * 200


def python(passes: int) -> int:
    """Bytecode and nothing else."""
    total = 0
    for number in range(passes):
        total += number * number % 7
    return total


def native(passes: int) -> int:
    """Native code, called once per pass and for most of a millisecond."""
    checksum = 0
    for _ in range(passes):
        checksum ^= len(zlib.compress(BLOCK, 6))
    return checksum


if __name__ == "__main__":
    take_turns({"python": python, "native": native})
