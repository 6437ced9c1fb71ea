"""Tasks that come and go as fast as they can, in two threads; each name says which coroutine its tasks are made of.

Names are renewed all the time, so the strings behind them are freed while they may be read.
"""

import asyncio
import json
import sys
import threading
import time
from pathlib import Path


def spin(rounds: int) -> int:
    return sum(number * number for number in range(rounds))


async def alpha(number: int) -> None:
    spin(50)
    await asyncio.sleep(0)
    rename("alpha", number)
    spin(50)


async def beta(number: int) -> None:
    rename("beta", number)
    await alpha_awaited()
    spin(50)


async def gamma(number: int) -> None:
    for step in range(3):
        rename("gamma", number + step)
        await asyncio.sleep(0)
        spin(30)


async def alpha_awaited() -> None:
    await asyncio.sleep(0)
    spin(100)


def rename(name: str, number: int) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.set_name(f"{name} {number % 300}" + "ß≠🙂"[number % 3] * (number % 40))


async def storm(seconds: float) -> None:
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                number += 1
                kind = (alpha, beta, gamma)[number % 3]
                group.create_task(kind(number), name=f"{kind.__name__} first {number % 7}")


threads = [threading.Thread(target=lambda: asyncio.run(storm(float(sys.argv[2])))) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
Path(sys.argv[1]).write_text(json.dumps({"spent": {}}), encoding="utf-8")
