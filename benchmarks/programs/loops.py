"""Loops that do little but allocate or copy: the worst that a recorder of memory can be asked to watch.

numpy is imported by the loops that need it, so that the others run without.
"""

import asyncio
import json
from collections.abc import Callable
from functools import partial

Pass = Callable[[], object]

ROWS = 150_000
"""Elements of an array of doubles of 1.2 MB."""
DOCUMENT = json.dumps(
    [
        {"id": number, "name": f"name {number}", "tags": ["a", "b", str(number)], "price": number / 7}
        for number in range(500)
    ]
)


def numpy_temporaries() -> Pass:
    """Arithmetic on arrays of 1.2 MB, each result a new array that dies at once."""
    import numpy as np

    left = np.linspace(0.0, 1.0, ROWS)
    right = np.linspace(1.0, 2.0, ROWS)

    def one_pass() -> None:
        for _ in range(100):
            left * right + left

    return one_pass


def list_insert() -> Pass:
    """`list.insert(0, x)`: a block that grows by realloc, and one memmove of all of it for each insertion."""

    def one_pass() -> None:
        items: list[int] = []
        for number in range(15_000):
            items.insert(0, number)

    return one_pass


def dict_inserts() -> Pass:
    """A million insertions into one dict, with fresh integers and strings."""

    def one_pass() -> None:
        table: dict[int, str] = {}
        for number in range(1_000_000):
            table[number] = str(number)

    return one_pass


def small_tuples() -> Pass:
    """A million tuples that live until the pass is over, so that the interpreter's free list is of no use."""
    return lambda: [(number, number) for number in range(1_000_000)]


def web_requests() -> Callable[[], object]:
    """Requests in tasks of asyncio, each answered by some objects made for it, as JSON."""
    items = [{"id": number, "name": f"item {number}", "tags": ["a", "b"]} for number in range(130)]

    async def request(number: int) -> int:
        await asyncio.sleep(0)
        return len(json.dumps([{**item, "seen": number} for item in items if item["id"] != number]).encode())

    async def serve() -> int:
        return sum(await asyncio.gather(*[request(number) for number in range(200)]))

    return lambda: asyncio.run(serve())


def json_loads() -> Pass:
    """`json.loads` of the same document, over and over."""

    def one_pass() -> None:
        for _ in range(100):
            json.loads(DOCUMENT)

    return one_pass


def _copies(size: int, count: int) -> Pass:
    source = bytearray(size)
    target = bytearray(size)
    view = memoryview(target)

    def one_pass() -> None:
        for _ in range(count):
            view[:] = source

    return one_pass


PROGRAMS: dict[str, Callable[[], Pass]] = {
    "numpy temporaries": numpy_temporaries,
    "list.insert(0, x)": list_insert,
    "dict inserts": dict_inserts,
    "small tuples": small_tuples,
    "json.loads": json_loads,
    "web requests": web_requests,
    # Below and above the size from which copies are counted.
    "copies of 256 bytes": partial(_copies, 256, 500_000),
    "copies of 1 KB": partial(_copies, 1024, 500_000),
}
