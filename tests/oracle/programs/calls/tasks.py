"""Tasks of asyncio that pass things on through a queue, and sleep between."""

import asyncio
import sys

from counts import CALLS


def decode(value: int) -> int:
    return sum(range(value % 150))


def label(value: int) -> str:
    return f"item {value}"


async def deliver(queue: "asyncio.Queue[int]", value: int) -> None:
    await queue.put(value)


async def work(queue: "asyncio.Queue[int]") -> None:
    while True:
        value = await queue.get()
        if value < 0:
            return
        decode(value)
        if value % 3 == 0:
            label(value)
            CALLS["label"] += 1


async def produce(rounds: int) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue(50)
    workers = [asyncio.create_task(work(queue)) for _ in range(5)]
    for _ in range(rounds):
        for value in range(200):
            await deliver(queue, value)
        await asyncio.sleep(0.001)
    CALLS["deliver"] += 200 * rounds
    CALLS["decode"] += 200 * rounds
    for _ in workers:
        await queue.put(-1)
    await asyncio.gather(*workers)


asyncio.run(produce(int(sys.argv[1]) if len(sys.argv) > 1 else 3000))
