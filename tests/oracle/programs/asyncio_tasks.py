"""Tasks of asyncio with and without names, in all the ways that a task comes to run; each measures its own CPU time.

Work is noted by coroutine and name, as ``coroutine|name``; with an empty name where the program gave none.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import truth

clocks = truth.Clocks()
TOTAL_S = truth.seconds(3.0)


def spin(rounds: int) -> None:
    value = 0
    for number in range(rounds):
        value += number * number % 7


async def work(coroutine: str, name: str, part: float) -> None:
    """Use this part of the program's CPU time, in turns with the other tasks."""
    end = clocks.spent.get(f"{coroutine}|{name}", 0) + int(part * TOTAL_S * 1e9)
    while clocks.spent.get(f"{coroutine}|{name}", 0) < end:
        clocks.run(f"{coroutine}|{name}", spin, 20_000)
        await asyncio.sleep(0)


async def worker(name: str, part: float) -> None:
    await work("worker", name, part)


async def renamed() -> None:
    for name in ("before", "after"):
        task = asyncio.current_task()
        assert task is not None
        task.set_name(name)
        await work("renamed", name, 0.05)


async def child(name: str) -> None:
    await work("child", name, 0.05)


async def parent() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(child("first"), name="first")
        group.create_task(child("second"), name="second")
        await work("parent", "parent", 0.05)
    await asyncio.gather(child(""), child(""))
    await child_of_parent()


async def child_of_parent() -> None:
    await work("parent", "parent", 0.05)


class OwnTask(asyncio.Task):  # type: ignore[type-arg]  # no type arguments before 3.12 at run time
    pass


async def of_a_class() -> None:
    await work("of_a_class", "own class", 0.05)


async def in_python() -> None:
    await work("in_python", "", 0.05)


async def eager() -> None:
    """Runs at once, on the stack of the task that makes it, and once more when the loop resumes it."""
    clocks.run("eager|eager", spin, 20_000)
    await asyncio.sleep(0)
    await work("eager", "eager", 0.05)


async def maker() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(2):
        task: Any = asyncio.Task(eager(), loop=loop, name="eager", eager_start=True)  # type: ignore[call-arg,unused-ignore]
        await work("maker", "maker", 0.025)
        await task


async def blocking() -> None:
    time.sleep(0.3)


async def awaiting() -> None:
    await asyncio.sleep(0.3)
    clocks.run("awaiting|awaits", spin, 20_000)


async def hoarding() -> None:
    held = bytearray(80 << 20)
    await asyncio.sleep(0)
    del held


async def side(name: str) -> None:
    await work("side", name, 0.05)


async def named(*tasks: tuple[Any, str | None]) -> None:
    await asyncio.gather(*(asyncio.create_task(each, name=name) for each, name in tasks))


def own_tasks(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
    return OwnTask(coroutine, loop=loop, **options)


def python_tasks(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
    return asyncio.tasks._PyTask(coroutine, loop=loop, **options)  # type: ignore[attr-defined]


async def with_factory(make: Callable[..., Any], coroutine: Any, name: str) -> None:
    asyncio.get_running_loop().set_task_factory(make)
    await asyncio.create_task(coroutine, name=name)


def main(run: Callable[[Any], None]) -> None:
    wide = "leicht – 軽い 🪶"
    run(named((worker("heavy", 0.2), "heavy"), (worker(wide, 0.1), wide), (worker("", 0.1), None)))
    run(named((worker("", 0.05), "Task-12"), (renamed(), None), (parent(), "parent")))
    run(named((blocking(), "blocks"), (awaiting(), "awaits"), (hoarding(), "hoards")))
    run(with_factory(own_tasks, of_a_class(), "own class"))
    run(with_factory(python_tasks, in_python(), "never seen"))
    if sys.version_info >= (3, 12):
        run(named((maker(), "maker")))
    threads = [threading.Thread(target=run, args=(named((side(name), name)),)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if sys.argv[3:] == ["uvloop"]:
    import uvloop

    def under_uvloop(coroutine: Any) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(coroutine)

    main(under_uvloop)
else:
    main(asyncio.run)
clocks.write()
