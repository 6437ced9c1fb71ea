"""Nothing but Python: five shapes of loop, each with a known share of the CPU time.

The recursion makes the interpreter map and unmap memory for its frames again and again, which is kernel time. The third
argument, if there is one, lists the shapes to run.
"""

import sys
from collections.abc import Iterator

from truth import Clocks, seconds


def for_loop(rounds: int) -> int:
    total = 0
    for index in range(rounds):  # @for
        total += index & 7  # @for
        if total > 1000:  # @for
            total -= 1000  # @for
    return total


def while_loop(rounds: int) -> int:
    index = total = 0
    while index < rounds:  # @while
        index += 1  # @while
        total ^= index  # @while
    return total


def comprehension(rounds: int) -> list[int]:
    result: list[int] = []
    for _ in range(rounds // 100):  # @comprehension
        result = [index * 3 for index in (1, 2, 3, 5, 7) * 20]  # @comprehension
    return result


def numbers(rounds: int) -> Iterator[int]:
    for index in range(rounds):  # @generator
        yield index & 15  # @generator


def generator(rounds: int) -> int:
    total = 0
    for number in numbers(rounds):  # @generator
        total += number  # @generator
    return total


def descend(depth: int) -> int:
    if depth == 0:  # @recursion
        return 0  # @recursion
    return 1 + descend(depth - 1)  # @recursion


def recursion(rounds: int) -> int:
    total = 0
    for _ in range(rounds):  # @recursion
        total += descend(500)  # @recursion
    return total


def main() -> None:
    clocks = Clocks()
    work = [
        ("for", for_loop, 250_000),
        ("while", while_loop, 200_000),
        ("comprehension", comprehension, 700_000),
        ("generator", generator, 150_000),
        ("recursion", recursion, 150),
    ]
    chosen = sys.argv[3].split(",") if len(sys.argv) > 3 else [name for name, _, _ in work]
    clocks.cycle(seconds(4.0), [entry for entry in work if entry[0] in chosen])
    clocks.write()


if __name__ == "__main__":
    main()
