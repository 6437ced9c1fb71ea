"""Programs that are large in one way: many threads, deep stacks, many allocations, many processes."""

import os
import threading
from collections.abc import Callable
from functools import partial

Pass = Callable[[], object]

WORK = 1_500_000
"""Steps of one pass, shared among the threads or processes."""


def work(steps: int) -> int:
    """Bytecode and nothing else."""
    total = 0
    for number in range(steps):
        total += number * number % 7
    return total


def threads(count: int) -> Pass:
    """So many threads that work by turns."""

    def one_pass() -> None:
        crowd = [threading.Thread(target=work, args=(WORK // count,)) for _ in range(count)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()

    return one_pass


def depth(frames: int) -> Pass:
    """Work at the end of so many calls."""

    def descend(left: int) -> int:
        return descend(left - 1) if left else work(WORK)

    return partial(descend, frames)


def allocations(size: int) -> Pass:
    """100 MB of blocks of one size, each dropped at once."""

    def one_pass() -> None:
        for _ in range(100_000_000 // max(size, 500)):
            bytearray(size)

    return one_pass


def processes(count: int) -> Pass:
    """So many forked processes, at most four at a time."""

    def one_pass() -> None:
        running: list[int] = []
        for _ in range(count):
            if len(running) == 4:
                os.waitpid(running.pop(0), 0)
            pid = os.fork()
            if pid == 0:
                work(WORK // count)
                os._exit(0)
            running.append(pid)
        for pid in running:
            os.waitpid(pid, 0)

    return one_pass


PROGRAMS: dict[str, Callable[[], Pass]] = {
    **{f"{count} threads": partial(threads, count) for count in (1, 10, 100, 500)},
    **{f"{frames} frames deep": partial(depth, frames) for frames in (10, 100, 900)},
    **{f"blocks of {size} bytes": partial(allocations, size) for size in (100, 1_000, 10_000, 1_000_000)},
    **{f"{count} processes": partial(processes, count) for count in (1, 8, 64)},
}
