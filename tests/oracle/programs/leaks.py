"""Four ways to leak 20 MB per second for two seconds, after a little work that does not, and beside some that does not.

Argument 2 is the way, argument 3 the C library.
"""

import gc
import sys
import time

from memory_truth import MemoryTruth
from library import load
from pace import pieces

SECONDS, PIECE = 2.0, 4000
history: list[dict[str, object]] = []
cache: dict[int, bytes] = {}


class Node:
    """Part of a cycle that only the collector would find."""

    def __init__(self) -> None:
        self.me = self  # @cycle
        self.payload = bytearray(PIECE)  # @cycle


def temporary() -> int:
    """As much again as is leaked, and all of it dropped."""
    return len(bytearray(PIECE))


def growing_list() -> None:
    for number in pieces(SECONDS, PIECE):
        history.append({"number": number, "text": bytes(PIECE - 250)})  # @list
        temporary()


def unbounded_cache() -> None:
    for number in pieces(SECONDS, PIECE):
        temporary()
        if number not in cache:
            cache[number] = bytes(PIECE)  # @cache


def forgetful_library() -> None:
    library = load(sys.argv[3])
    for _ in pieces(SECONDS, PIECE):
        library.oracle_forget(1, PIECE)  # @library
        temporary()


def cycles() -> None:
    gc.disable()
    for _ in pieces(SECONDS, PIECE):
        Node()  # @cycle
        temporary()


WAYS = {"list": growing_list, "cache": unbounded_cache, "library": forgetful_library, "cycle": cycles}


def main() -> None:
    truth = MemoryTruth()
    for _ in pieces(0.3, PIECE):
        temporary()
    begin = time.monotonic_ns()
    WAYS[sys.argv[2]]()
    truth.facts["leaked_ns"] = [begin, time.monotonic_ns()]
    truth.add("leaked", int(SECONDS * 20_000_000))
    truth.write()


if __name__ == "__main__":
    main()
