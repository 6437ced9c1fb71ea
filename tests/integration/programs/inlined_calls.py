"""Makes calls that CPython evaluates within their caller's frame, and others; says how many of each there were."""

import asyncio
import json
from collections.abc import Generator


class Made:
    def __init__(self, value: int) -> None:
        self.value = value


class Held:
    def __getitem__(self, key: int) -> int:
        return key

    def __len__(self) -> int:
        return 3

    @property
    def value(self) -> int:
        return plain(1)


def plain(number: int, *, step: int = 1) -> int:
    return number + step


def recursive(depth: int) -> int:
    return 0 if depth == 0 else 1 + recursive(depth - 1)


def generator(count: int) -> Generator[int, None, None]:
    for number in range(count):
        yield plain(number)


def raises() -> None:
    raise KeyError


async def coroutine() -> int:
    await asyncio.sleep(0)
    return 1


def main() -> None:
    held = Held()
    for number in range(50):
        held[number], held.value, len(held)
        plain(number, step=2)
        Made(number)
        plain(*(number,))
        list(generator(3))
        recursive(9)
        unfinished = generator(5)
        next(unfinished)
        unfinished.close()
        try:
            raises()
        except KeyError:
            pass
    asyncio.run(coroutine())


main()
counts = {
    "Held.__getitem__": 50,
    "Held.__len__": 50,
    "Held.value": 50,
    "plain": 50 * (1 + 1 + 1 + 3 + 1),
    "Made.__init__": 50,
}
counts |= {"generator": 100, "recursive": 500, "raises": 50, "coroutine": 1, "main": 1}
print(json.dumps(counts))
