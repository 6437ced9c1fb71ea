"""Programs that leak 20 MB per second, and programs that allocate as much and leak nothing.

    python leaking.py WAY SECONDS REPORT     # writes the bytes that the way leaked

What leaks is marked `# @NAME`, with the name of the way.
"""

import ctypes
import gc
import json
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

PIECE = 4000
RATE = 20_000_000
"""Bytes per second."""

Pieces = Iterator[int]
HISTORY: list[bytes] = []
CACHE: dict[int, bytes] = {}


def growing_list(pieces: Pieces) -> int:
    """Everything is put into a list that is never read."""
    for _ in pieces:
        HISTORY.extend([bytes(PIECE)])  # @growing_list
    return len(HISTORY) * PIECE


def unbounded_cache(pieces: Pieces) -> int:
    """Each request has a key of its own."""
    for number in pieces:
        if number not in CACHE:
            CACHE[number] = bytes(PIECE)  # @unbounded_cache
    return len(CACHE) * PIECE


def forgetful_library(pieces: Pieces) -> int:
    """Native memory that is never given back."""
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    last = 0
    for number in pieces:
        ctypes.memset(library.malloc(PIECE), 1, PIECE)  # @forgetful_library
        last = number
    return last * PIECE


class Node:
    """Part of a cycle that only the collector would find."""

    def __init__(self) -> None:
        self.me = self  # @cycles
        self.payload = bytearray(PIECE)  # @cycles


def cycles(pieces: Pieces) -> int:
    """Cycles, with the collector turned off."""
    gc.disable()
    last = 0
    for number in pieces:
        Node()  # @cycles
        last = number
    return last * PIECE


def temporaries(pieces: Pieces) -> int:
    """Each dies at once."""
    return 0 * sum(len(bytes(PIECE)) for _ in pieces)


def filled_cache(pieces: Pieces) -> int:
    """Fills up in the first half second."""
    cache: dict[int, bytes] = {}
    for number in pieces:
        cache.setdefault(number % 2500, bytes(PIECE))
    return 0


def ring(pieces: Pieces) -> int:
    """Holds the newest of what it gets."""
    newest: deque[bytes] = deque(maxlen=2000)
    for _ in pieces:
        newest.append(bytes(PIECE))
    return 0


def sawtooth(pieces: Pieces) -> int:
    """A buffer that is flushed when it is full; the program ends while it is filling."""
    buffer: list[bytes] = []
    for _ in pieces:
        buffer.append(bytes(PIECE))
        if len(buffer) >= 1800:
            buffer.clear()
    return 0


def table_at_start(pieces: Pieces) -> int:
    """A large table that is made once and used to the end."""
    table = [bytes(PIECE) for _ in range(10_000)]
    for number in pieces:
        assert len(table[number % len(table)]) == PIECE
    return 0


def random_lives(pieces: Pieces) -> int:
    """Blocks that live for a random time, as many as before at any moment."""
    held: list[bytes] = [b""] * 2000
    for _ in pieces:
        held[random.randrange(len(held))] = bytes(PIECE)
    return 0


LEAKS: dict[str, Callable[[Pieces], int]] = {
    "growing_list": growing_list,
    "unbounded_cache": unbounded_cache,
    "forgetful_library": forgetful_library,
    "cycles": cycles,
}
INNOCENTS: dict[str, Callable[[Pieces], int]] = {
    "temporaries": temporaries,
    "filled_cache": filled_cache,
    "ring": ring,
    "sawtooth": sawtooth,
    "table_at_start": table_at_start,
    "random_lives": random_lives,
}


def paced(seconds: float) -> Pieces:
    """Numbers from 1, at the rate at which pieces make up `RATE`."""
    begin = time.monotonic()
    for number in range(1, int(seconds * RATE / PIECE) + 1):
        ahead = begin + number * PIECE / RATE - time.monotonic()
        if ahead > 0.01:
            time.sleep(ahead)
        yield number


def main() -> None:
    """Runs one way and writes the report."""
    way = (LEAKS | INNOCENTS)[sys.argv[1]]
    leaked = way(paced(float(sys.argv[2])))
    Path(sys.argv[3]).write_text(json.dumps({"leaked": leaked}), encoding="utf-8")


if __name__ == "__main__":
    main()
