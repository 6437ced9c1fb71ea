"""A main thread in an event loop whose tasks await child processes, and clock when; each child clocks its `transform`.

``python parent_waits_loop.py TRUTH HOW LOOP``. The truth is as in `parent_waits.py`: the seconds awaited, and the part
of the children's time in them that was spent in `transform`.
"""

import asyncio
import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from parent_waits import ROUNDS, TASKS, burn, overlap, transform, waited, waits, work

CHILD = Path(__file__).with_name("parent_waits.py")


async def ticking() -> None:
    """Another task, which sleeps meanwhile."""
    while True:
        await asyncio.sleep(0.05)  # @ticking


async def executor() -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as children:
        loop = asyncio.get_running_loop()
        for _ in range(ROUNDS):
            began = time.monotonic()
            parts = [loop.run_in_executor(children, transform, units) for units in TASKS]
            work.extend(await asyncio.gather(*parts))  # @executor
            waited(began)
            await asyncio.sleep(0.1)


async def one(children: ProcessPoolExecutor, units: int) -> None:
    work.append(await asyncio.get_running_loop().run_in_executor(children, transform, units))  # @tasks


async def tasks() -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as children:
        for _ in range(ROUNDS):
            began = time.monotonic()
            await asyncio.gather(*(one(children, units) for units in TASKS))
            waited(began)


async def programs() -> None:
    for _ in range(2):
        child = await asyncio.create_subprocess_exec(
            sys.executable, str(CHILD), "-", "child", "10", stdout=asyncio.subprocess.PIPE
        )
        began = time.monotonic()
        text, _ = await child.communicate()  # @programs
        waited(began)
        work.append(tuple(json.loads(text)))


async def lines() -> None:
    for _ in range(2):
        child = await asyncio.create_subprocess_exec(
            sys.executable, str(CHILD), "-", "child", "10", stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout is not None
        began = time.monotonic()
        text = await child.stdout.readline()  # @lines
        waited(began)
        work.append(tuple(json.loads(text)))
        await child.wait()


async def unclear() -> None:
    """What is awaited while a child works all the time, and is not for it."""
    child = multiprocessing.get_context("fork").Process(target=transform, args=(100,))
    child.start()
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0.5)  # @sleeps
    mine, theirs = await stream_pair()
    try:
        await asyncio.wait_for(mine.read(1), 0.5)  # @socket
    except TimeoutError:
        pass
    theirs.close()
    future = loop.create_future()
    loop.call_later(0.5, future.set_result, None)
    await future  # @future
    with ThreadPoolExecutor(1) as threads:
        await loop.run_in_executor(threads, burn, 0.4)  # @thread
        await loop.run_in_executor(threads, time.sleep, 0.4)  # @sleeping-thread
    child.kill()
    child.join()
    waits.append((0.0, 1.0))


async def stream_pair() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A reader to which nothing is written, and what closes its other end."""
    import socket

    mine, theirs = socket.socketpair()
    reader, _ = await asyncio.open_connection(sock=mine)
    _, writer = await asyncio.open_connection(sock=theirs)
    return reader, writer


async def main(how: str) -> None:
    other = asyncio.create_task(ticking())
    await globals()[how]()
    other.cancel()


if __name__ == "__main__":
    if sys.argv[3] == "uvloop":
        import uvloop

        uvloop.run(main(sys.argv[2]))
    else:
        asyncio.run(main(sys.argv[2]))
    seconds = sum(end - start for start, end in waits)
    within = sum(overlap(each, wait) for each in work for wait in waits)
    children = 1 if sys.argv[2] in ("programs", "lines") else len(TASKS)
    Path(sys.argv[1]).write_text(json.dumps({"wait_s": seconds, "share": within / seconds / children}))
