"""Tasks that await others through ``asyncio.wait``, and in the way that it has since 3.14: there its callback holds the
task that awaits, too.
"""

import asyncio
import sys
from pathlib import Path


async def part() -> None:
    await asyncio.sleep(1)


async def waiting(task: "asyncio.Task[None]") -> None:
    await asyncio.wait([task])


async def waiting_as_in_3_14(task: "asyncio.Task[None]") -> None:
    awaiting = asyncio.current_task()
    waiter = asyncio.get_running_loop().create_future()

    def completed(_: "asyncio.Task[None]") -> None:
        assert awaiting is not None
        waiter.set_result(None)

    task.add_done_callback(completed)
    await waiter


async def main() -> None:
    await asyncio.gather(
        waiting(asyncio.create_task(part(), name="first")),
        waiting_as_in_3_14(asyncio.create_task(part(), name="second")),
    )


if sys.argv[2:] == ["uvloop"]:
    import uvloop

    uvloop.run(main())
else:
    asyncio.run(main())
Path(sys.argv[1]).write_text("{}")
