"""Coroutines that are awaited in coroutines, most of them without being suspended."""

import asyncio
import sys

from counts import CALLS


async def price(item: int) -> float:
    return sum(range(item % 40)) * 1.19


async def total(items: range) -> float:
    value = 0.0
    for item in items:
        value += await price(item)
    return value


async def pass_on() -> None:
    await asyncio.sleep(0)


async def run(turns: int) -> None:
    for turn in range(turns):
        await total(range(turn, turn + 100))
        await pass_on()
    CALLS.update(price=100 * turns, total=turns, pass_on=turns)


asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000))
