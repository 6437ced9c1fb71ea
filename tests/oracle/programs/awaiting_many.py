"""Many tasks that clock their awaits: so many that sleep, or that switch thousands of times a second.

``python awaiting_many.py TRUTH TASKS LOOP [storm]``.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

truth: dict[str, float] = {"switches": 0.0}


def clocked(name: str, began: float) -> None:
    truth[name] = truth.get(name, 0.0) + time.monotonic() - began


async def crowd(number: int) -> None:
    for _ in range(4):
        began = time.monotonic()
        if number % 4:
            await asyncio.sleep(0.5 + number % 7 * 0.1)  # @many
            clocked("many", began)
        else:
            await asyncio.sleep(0.3)  # @few
            clocked("few", began)


async def storm(number: int) -> None:
    until = time.monotonic() + 3
    while time.monotonic() < until:
        began = time.monotonic()
        if number % 2:
            await asyncio.sleep(0.01)  # @often
            clocked("often", began)
        else:
            await asyncio.sleep(0.03)  # @seldom
            clocked("seldom", began)
        truth["switches"] += 1 / 3


async def main() -> None:
    step = storm if len(sys.argv) > 4 else crowd
    await asyncio.gather(*(step(number) for number in range(int(sys.argv[2]))))


if sys.argv[3] == "uvloop":
    import uvloop

    uvloop.run(main())
else:
    asyncio.run(main())
if len(sys.argv) <= 4:
    truth.pop("switches")
Path(sys.argv[1]).write_text(json.dumps(truth))
