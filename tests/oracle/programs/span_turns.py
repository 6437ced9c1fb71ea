"""Spans that take turns, which clock each of their steps: tasks of asyncio, uvloop, trio, anyio, greenlets, threads.

``python span_turns.py TRUTH SECONDS HOW``.
"""

import asyncio
import contextvars
import itertools
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tachograph.recorder import span
from truth import Clocks, seconds

WEIGHTS = {"heavy": 8, "middle": 3, "light": 1}
BYTES = 1_000_000

clocks = Clocks()
awaited = dict.fromkeys((*WEIGHTS, "child"), 0.0)
allocated: dict[str, int] = {}
ROUNDS = int(seconds(6) / 0.024)


def burn(name: str, units: int) -> None:
    began = time.thread_time_ns()
    until = began + units * 2_000_000
    while time.thread_time_ns() < until:
        for _ in itertools.repeat(None, 5_000):  # makes no numbers: those would be memory that nothing counts here
            pass
    blocks = [bytearray(BYTES) for _ in range(units)]
    del blocks
    allocated[name] = allocated.get(name, 0) + units * BYTES
    clocks.add(name, time.thread_time_ns() - began)


async def rest(name: str) -> None:
    began = time.monotonic()
    await asyncio.sleep(0)
    awaited[name] += time.monotonic() - began


async def child() -> None:
    """Made within the span of another task, in a span of its own."""
    with span("child"):
        for _ in range(ROUNDS // 4):
            burn("child", 1)
            await rest("child")


async def helper(name: str) -> None:
    """Made within the span of another task: its work is that one's."""
    for _ in range(ROUNDS // 4):
        burn(name, 1)
        await asyncio.sleep(0)


async def task(name: str) -> None:
    with span(name):
        others = [asyncio.create_task(child()), asyncio.create_task(helper(name))] if name == "light" else []
        for _ in range(ROUNDS):
            burn(name, WEIGHTS[name])
            await rest(name)
        for other in others:
            await other


async def tasks() -> None:
    await asyncio.gather(*map(task, WEIGHTS))


Pause = Callable[[], Awaitable[None]]


async def steps(name: str, pause: Pause, start: Callable[..., object]) -> None:
    """As ``task``, of a library that starts tasks in groups."""
    with span(name):
        if name == "light":
            start(child_of_group, pause)
            start(helper_of_group, name, pause)
        for _ in range(ROUNDS):
            burn(name, WEIGHTS[name])
            await pause_of(name, pause)


async def child_of_group(pause: Pause) -> None:
    with span("child"):
        for _ in range(ROUNDS // 4):
            burn("child", 1)
            await pause_of("child", pause)


async def helper_of_group(name: str, pause: Pause) -> None:
    for _ in range(ROUNDS // 4):
        burn(name, 1)
        await pause()


async def pause_of(name: str, pause: Pause) -> None:
    began = time.monotonic()
    await pause()
    awaited[name] += time.monotonic() - began


def in_task_groups(how: str) -> None:
    """Of trio, and of anyio above it."""
    import trio

    async def of_trio() -> None:
        async with trio.open_nursery() as nursery:
            for name in WEIGHTS:
                nursery.start_soon(steps, name, trio.lowlevel.checkpoint, nursery.start_soon)

    if how == "trio":
        trio.run(of_trio)
        return
    import anyio

    async def of_anyio() -> None:
        async with anyio.create_task_group() as group:
            for name in WEIGHTS:
                group.start_soon(steps, name, anyio.lowlevel.checkpoint, group.start_soon)

    anyio.run(of_anyio, backend="trio")


def in_turns(pause: Callable[[], object]) -> Callable[[str], None]:
    def work(name: str) -> None:
        with span(name):
            for _ in range(ROUNDS):
                burn(name, WEIGHTS[name])
                pause()

    return work


def run(how: str) -> None:
    main: Coroutine[Any, Any, None] = tasks() if how in ("asyncio", "uvloop") else asyncio.sleep(0)
    if how == "asyncio":
        asyncio.run(main)
        return
    if how == "uvloop":
        import uvloop

        uvloop.run(main)
        return
    main.close()
    if how in ("trio", "anyio"):
        in_task_groups(how)
    elif how == "gevent":
        import gevent

        work = in_turns(lambda: gevent.sleep(0))
        gevent.joinall([gevent.spawn(work, name) for name in WEIGHTS])
    elif how == "eventlet":
        import eventlet

        work = in_turns(lambda: eventlet.sleep(0))
        for each in [eventlet.spawn(work, name) for name in WEIGHTS]:
            each.wait()
    else:
        work = in_turns(lambda: time.sleep(0))
        threads = [threading.Thread(target=contextvars.Context().run, args=(work, name)) for name in WEIGHTS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


run(sys.argv[3])
clocks.facts["await_s"] = awaited
clocks.facts["allocated"] = allocated
clocks.write()
