"""Copies of known size, by every usual way of making one, each on a line of its own.

Argument 2 is the size of a copy in KB, argument 3 how many MB to copy by each way.
"""

import pickle
import sys

import numpy as np
from memory_truth import MemoryTruth

PIECE = int(sys.argv[2]) << 10
ROUNDS = (int(sys.argv[3]) << 20) // PIECE
ARRAY = np.arange(PIECE // 8, dtype=np.float64)
MUTABLE, BYTES = bytearray(PIECE), bytes(PIECE)


def to_bytes() -> int:
    for _ in range(ROUNDS):
        bytes(MUTABLE)  # @bytes
    return ROUNDS * PIECE


def copy() -> int:
    for _ in range(ROUNDS):
        ARRAY.copy()  # @copy
    return ROUNDS * PIECE


def tobytes() -> int:
    for _ in range(ROUNDS):
        ARRAY.tobytes()  # @tobytes
    return ROUNDS * PIECE


def slicing() -> int:
    for _ in range(ROUNDS):
        BYTES[1:]  # @slicing
    return ROUNDS * (PIECE - 1)


def dumps() -> int:
    for _ in range(ROUNDS):
        pickle.dumps(BYTES, 5)  # @dumps
    return ROUNDS * PIECE


def loads() -> int:
    pickled = pickle.dumps(BYTES, 5)
    for _ in range(ROUNDS):
        pickle.loads(pickled)  # @loads
    return ROUNDS * PIECE


def assign() -> int:
    target = bytearray(PIECE)
    for _ in range(ROUNDS):
        target[:] = MUTABLE  # @assign (bytes would be copied twice: Python makes a bytearray of them first)
    return ROUNDS * PIECE


def main() -> None:
    truth = MemoryTruth()
    truth.add("bytes", to_bytes())
    truth.add("copy", copy())
    truth.add("tobytes", tobytes())
    truth.add("slicing", slicing())
    truth.add("dumps", dumps())
    truth.add("loads", loads())
    truth.add("assign", assign())
    truth.write()


if __name__ == "__main__":
    main()
