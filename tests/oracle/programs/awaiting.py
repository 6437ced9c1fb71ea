"""Tasks that clock each of their awaits: sleep, a lock, a queue, gather, a socket. Tells the seconds of each marked line.

``python awaiting.py TRUTH ROUNDS [uvloop]``.
"""

import asyncio
import json
import socket
import sys
import time
from pathlib import Path

truth: dict[str, float] = {}


def clocked(name: str, began: float) -> None:
    truth[name] = truth.get(name, 0.0) + time.monotonic() - began


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def sleeper(rounds: int) -> None:
    for _ in range(rounds):
        began = time.monotonic()
        await asyncio.sleep(0.02)  # @sleep
        clocked("sleep", began)


async def locked(lock: asyncio.Lock, rounds: int) -> None:
    for _ in range(rounds):
        began = time.monotonic()
        await lock.acquire()  # @lock
        clocked("lock", began)
        try:
            began = time.monotonic()
            await asyncio.sleep(0.005)  # @held
            clocked("held", began)
        finally:
            lock.release()


async def consumer(queue: asyncio.Queue[int | None]) -> None:
    while True:
        began = time.monotonic()
        item = await queue.get()  # @queue
        clocked("queue", began)
        if item is None:
            return
        burn(0.001)


async def producer(queue: asyncio.Queue[int | None], rounds: int) -> None:
    for number in range(rounds):
        began = time.monotonic()
        await asyncio.sleep(0.01)  # @produce
        clocked("produce", began)
        await queue.put(number)
    await queue.put(None)


async def part(seconds: float) -> None:
    began = time.monotonic()
    await asyncio.sleep(seconds)  # @part
    clocked("part", began)


async def gathering(rounds: int) -> None:
    for _ in range(rounds):
        began = time.monotonic()
        await asyncio.gather(*(part(0.01 * (number % 4 + 1)) for number in range(20)))  # @gather
        clocked("gather", began)


async def reader(stream: asyncio.StreamReader) -> None:
    while True:
        began = time.monotonic()
        data = await stream.read(100)  # @socket
        clocked("socket", began)
        if not data:
            return


async def writer(peer: socket.socket, rounds: int) -> None:
    for _ in range(rounds):
        began = time.monotonic()
        await asyncio.sleep(0.03)  # @write
        clocked("write", began)
        peer.send(b"x")
    peer.close()


async def main(scale: int) -> None:
    queue: asyncio.Queue[int | None] = asyncio.Queue()
    lock = asyncio.Lock()
    mine, peer = socket.socketpair()
    stream, _ = await asyncio.open_connection(sock=mine)
    began = time.monotonic()
    await asyncio.gather(  # @main
        *(asyncio.create_task(sleeper(50 * scale), name=f"sleeper {number}") for number in range(3)),
        *(locked(lock, 60 * scale) for _ in range(4)),
        consumer(queue),
        producer(queue, 100 * scale),
        gathering(25 * scale),
        reader(stream),
        writer(peer, 30 * scale),
    )
    clocked("main", began)


if sys.argv[3:] == ["uvloop"]:
    import uvloop

    uvloop.run(main(int(sys.argv[2])))
else:
    asyncio.run(main(int(sys.argv[2])))
Path(sys.argv[1]).write_text(json.dumps(truth))
