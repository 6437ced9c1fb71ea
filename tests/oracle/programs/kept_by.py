"""Memory that is held in ways that are known: each line that allocates says by what."""

import ctypes
import functools
import sys
from collections.abc import Callable

from memory_truth import MemoryTruth

MB = 1 << 20
SIZE = 2 * MB
COUNT = 4
CACHE: dict[str, bytearray] = {}
PAIRS: list[tuple[float, float]] = []


class Registry:
    items: list[bytes] = []  # noqa: RUF012  # what a program forgets to empty


class Application:
    """Its own functions say so where the recorder calls one."""

    def __init__(self) -> None:
        self.history: list[bytearray] = []

    def __eq__(self, other: object) -> bool:
        print("__eq__ was called", file=sys.stderr)
        return self is other

    def __hash__(self) -> int:
        print("__hash__ was called", file=sys.stderr)
        return 1

    def __repr__(self) -> str:
        print("__repr__ was called", file=sys.stderr)
        return "application"


class Node:
    __slots__ = ("payload",)

    def __init__(self, payload: bytearray) -> None:
        self.payload = payload


@functools.lru_cache(None)
def table(number: int) -> bytearray:
    return bytearray(b"x" * SIZE) + bytes([number])  # @cached


def closure() -> Callable[[], list[bytearray]]:
    held = [bytearray(b"x" * SIZE) for _ in range(COUNT)]  # @closure
    return lambda: held


application = Application()
keep = closure()
node = Node(bytearray(b"x" * (COUNT * SIZE)))  # @slot


def fill() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    for number in range(COUNT):
        CACHE[f"key {number}"] = bytearray(b"x" * SIZE)  # @global
        Registry.items.append(bytes([number]) * SIZE)  # @class
        application.history.append(bytearray(b"x" * SIZE))  # @instance
        table(number)
        libc.malloc(SIZE)  # @native
    for number in range(200_000):
        PAIRS.append((number / 3, 1.0))  # @small


def main() -> None:
    fill()
    MemoryTruth().write()


if __name__ == "__main__":
    main()
    sys.exit(0)
