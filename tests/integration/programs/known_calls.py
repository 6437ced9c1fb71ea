"""Calls whose numbers are known: the program says them at its end, one line of JSON."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from time import process_time, sleep


def constant() -> int:
    return sum(range(200))


def bimodal(number: int) -> int:
    return sum(range(4000 if number % 10 == 0 else 50))


def early() -> int:
    return sum(range(300))


def rare() -> None:
    sleep(0.02)


def recursive(depth: int) -> int:
    return 0 if depth == 0 else 1 + recursive(depth - 1)


def raises() -> None:
    raise KeyError


def generator(count: int) -> Iterator[int]:
    for number in range(count):
        yield number


async def coroutine() -> None:
    await asyncio.sleep(0.4)


async def both() -> None:
    await asyncio.gather(coroutine(), coroutine())


def in_thread(count: int) -> None:
    for _ in range(count):
        threaded()


def threaded() -> None:
    sum(range(10))


def few(counts: dict[str, int]) -> None:
    """Calls that are all watched where functions are watched one by one: there are fewer than any interval has."""
    for _ in range(6):
        rare()
    recursive(9)
    for _ in range(7):
        try:
            raises()
        except KeyError:
            pass
    for _ in range(3):
        list(generator(4))
    asyncio.run(both())
    threads = [threading.Thread(target=in_thread, args=(5,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts |= {"rare": 6, "recursive": 10, "raises": 7, "generator": 3, "coroutine": 2, "both": 1}
    counts |= {"in_thread": 2, "threaded": 10, "few": 1}


def many(counts: dict[str, int], seconds: float) -> None:
    """Many more calls than the budget has room for, for so much CPU time; one function stops being called."""
    begin, rounds, early_rounds = process_time(), 0, 0
    while (passed := process_time() - begin) < seconds:
        is_early = passed < 0.43 * seconds
        for number in range(100):
            constant()
            bimodal(number)
            if is_early:
                early()
        rounds += 1
        early_rounds += is_early
    counts |= {"constant": rounds * 100, "bimodal": rounds * 100, "early": early_rounds * 100, "many": 1}


def main() -> None:
    counts: dict[str, int] = {}
    few(counts)
    many(counts, float(sys.argv[1]))
    print(json.dumps(counts | {"main": 1}))


main()
