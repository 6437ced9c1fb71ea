"""Programs that do next to nothing but call small functions: the worst that can be asked of what watches calls.

python small_calls.py NAME PASSES REPORT    # writes the seconds that so many passes took
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path


class Money:
    """A number with operators of its own."""

    __slots__ = ("cents",)

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __add__(self, other: "Money") -> "Money":
        return Money(self.cents + other.cents)

    def __lt__(self, other: "Money") -> bool:
        return self.cents < other.cents


def fibonacci(number: int) -> int:
    """Recursion: one call for each addition."""
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def recursion() -> None:
    """29,000 calls of one function."""
    fibonacci(21)


def operators() -> None:
    """Operators in Python, three calls an item."""
    total, limit = Money(0), Money(5_000)
    for number in range(10_000):
        item = Money(number)
        if item < limit:
            total = total + item


def numbers(count: int) -> Iterator[int]:
    """A generator that is called once and goes on many times."""
    for number in range(count):
        yield number * 3


def generators() -> None:
    """A long generator within another."""
    sum(value for value in numbers(60_000) if value % 2)


def short_generators() -> None:
    """Generators that are over after four steps."""
    for _ in range(5_000):
        for _ in numbers(3):
            pass


async def step(number: int) -> int:
    """A coroutine that never waits."""
    return number + 1


async def steps() -> None:
    """Awaits very many of them, and sleeps for no time now and then."""
    number = 0
    for turn in range(15_000):
        number = await step(number)
        if turn % 100 == 0:
            await asyncio.sleep(0)


def coroutines() -> None:
    """An event loop of its own."""
    asyncio.run(steps())


def refuse(number: int) -> int:
    """Raises for all numbers but one in ten."""
    if number % 10:
        raise ValueError
    return number


def exceptions() -> None:
    """An exception for nine calls of ten."""
    for number in range(12_000):
        with suppress(ValueError):
            refuse(number)


def new_code() -> None:
    """Code that is compiled, called twice and dropped: as templates and data classes do it."""
    for number in range(120):
        names: dict[str, Callable[[], int]] = {}
        exec(f"def made():\n    return {number}\n", names)  # noqa: S102  # it is what is measured
        names["made"]() + names["made"]()


SEVERAL = """
def f{number}(value):
    return value + {number}
"""


def many_functions() -> Callable[[], None]:
    """Three thousand functions, all of them called in turn."""
    names: dict[str, Callable[[int], int]] = {}
    exec("".join(SEVERAL.format(number=number) for number in range(3_000)), names)  # noqa: S102
    functions = [function for name, function in names.items() if name.startswith("f")]

    def one_pass() -> None:
        value = 0
        for _ in range(5):
            for function in functions:
                value = function(value)

    return one_pass


def callbacks() -> None:
    """C code that calls a small function: the key of a sort."""
    sorted(range(30_000), key=lambda number: -number)


PROGRAMS: dict[str, Callable[[], Callable[[], None]]] = {
    "recursion": lambda: recursion,
    "operators": lambda: operators,
    "generators": lambda: generators,
    "short generators": lambda: short_generators,
    "coroutines": lambda: coroutines,
    "exceptions": lambda: exceptions,
    "new code": lambda: new_code,
    "many functions": many_functions,
    "callbacks": lambda: callbacks,
}


def main() -> None:
    """Does what the command line says."""
    one_pass = PROGRAMS[sys.argv[1]]()
    begin, begin_cpu = time.perf_counter(), time.process_time()
    for _ in range(int(sys.argv[2])):
        one_pass()
    report = {"elapsed_s": time.perf_counter() - begin, "cpu_s": time.process_time() - begin_cpu}
    Path(sys.argv[3]).write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
