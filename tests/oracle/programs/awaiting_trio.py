"""Tasks of trio, or of anyio above it, that clock each of their awaits. Tells the seconds of each marked line.

The end of a group's block is awaited on the line where the block begins.

``python awaiting_trio.py TRUTH ROUNDS HOW``.
"""

import json
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import trio

truth: dict[str, float] = {}


def clocked(name: str, began: float) -> None:
    truth[name] = truth.get(name, 0.0) + time.monotonic() - began


async def sleeper(rounds: int, sleep: Callable[[float], Any]) -> None:
    for _ in range(rounds):
        began = time.monotonic()
        await sleep(0.02)  # @sleep
        clocked("sleep", began)


async def locked(lock: Any, rounds: int, sleep: Callable[[float], Any]) -> None:
    for _ in range(rounds):
        began = time.monotonic()
        await lock.acquire()  # @lock
        clocked("lock", began)
        try:
            began = time.monotonic()
            await sleep(0.005)  # @held
            clocked("held", began)
        finally:
            lock.release()


async def consumer(channel: Any) -> None:
    while True:
        began = time.monotonic()
        try:
            await channel.receive()  # @channel
        except (trio.EndOfChannel, anyio.EndOfStream):
            return
        finally:
            clocked("channel", began)


async def producer(channel: Any, rounds: int, sleep: Callable[[float], Any]) -> None:
    async with channel:
        for number in range(rounds):
            began = time.monotonic()
            await sleep(0.01)  # @produce
            clocked("produce", began)
            await channel.send(number)


async def waiting(event: Any) -> None:
    began = time.monotonic()
    await event.wait()  # @event
    clocked("event", began)


async def part(seconds: float, sleep: Callable[[float], Any]) -> None:
    began = time.monotonic()
    await sleep(seconds)  # @part
    clocked("part", began)


async def parts(rounds: int, group: Callable[[], Any], sleep: Callable[[float], Any]) -> None:
    for _ in range(rounds):
        async with group() as children:  # @parts
            for number in range(10):
                children.start_soon(part, 0.01 * (number % 4 + 1), sleep)
            began = time.monotonic()
            await sleep(0.005)  # @body
            clocked("body", began)
            began = time.monotonic()
        clocked("parts", began)


async def reader(stream: Any) -> None:
    while True:
        began = time.monotonic()
        data = await stream.receive_some(100)  # @socket
        clocked("socket", began)
        if not data:
            return


async def main(rounds: int, how: str) -> None:
    library: Any = trio if how == "trio" else anyio
    group = trio.open_nursery if how == "trio" else anyio.create_task_group
    send, receive = trio.open_memory_channel(0) if how == "trio" else anyio.create_memory_object_stream(0)
    lock, event = library.Lock(), library.Event()
    mine, peer = socket.socketpair()
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(mine))
    until = time.monotonic() + rounds
    async with group() as children:  # @main
        for number in range(3):
            children.start_soon(sleeper, 50 * rounds, library.sleep, name=f"sleeper {number}")
        for _ in range(4):
            children.start_soon(locked, lock, 60 * rounds, library.sleep)
        children.start_soon(consumer, receive)
        children.start_soon(producer, send, 100 * rounds, library.sleep)
        children.start_soon(parts, 25 * rounds, group, library.sleep)
        children.start_soon(reader, stream)
        children.start_soon(waiting, event)
        while time.monotonic() < until:
            began = time.monotonic()
            await library.sleep(0.03)  # @write
            clocked("write", began)
            peer.send(b"x")
        peer.close()
        event.set()
        began = time.monotonic()
    clocked("main", began)


if sys.argv[3] == "trio":
    trio.run(main, int(sys.argv[2]), sys.argv[3])
else:
    anyio.run(main, int(sys.argv[2]), sys.argv[3], backend="trio")
Path(sys.argv[1]).write_text(json.dumps(truth))
