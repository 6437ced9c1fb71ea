"""Nothing but Python: five shapes of loop, each with a known share of the CPU time."""

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
    clocks.cycle(
        seconds(6.0),
        [
            ("for", for_loop, 250_000),
            ("while", while_loop, 200_000),
            ("comprehension", comprehension, 700_000),
            ("generator", generator, 150_000),
            ("recursion", recursion, 150),
        ],
    )
    clocks.write()


if __name__ == "__main__":
    main()
