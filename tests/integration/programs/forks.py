"""Every way in which a Python process goes on in a copy of itself."""

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from work import work  # type: ignore[import-not-found]  # beside this file


def forked(name: str, then: Callable[[], object] = lambda: None) -> None:
    """A child of os.fork that works and ends."""
    pid = os.fork()
    if pid == 0:
        work(name)
        then()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def quick(_: int) -> None:
    work("in_executor")


def main() -> None:
    context = multiprocessing.get_context("fork")
    forked("in_fork")
    forked("in_fork_of_fork_1", lambda: forked("in_fork_of_fork_2"))
    thread = threading.Thread(target=forked, args=("in_fork_of_thread",), name="forker")
    thread.start()
    thread.join()
    # Its threads are not the child's, and are in the middle of something.
    stop = threading.Event()
    others = [threading.Thread(target=lambda: [sum(range(99)) for _ in iter(stop.is_set, True)]) for _ in range(3)]
    for other in others:
        other.start()
    forked("in_fork_beside_threads")
    stop.set()
    for other in others:
        other.join()
    process = context.Process(target=work, args=("in_process",))
    process.start()
    process.join()
    with context.Pool(2) as pool:
        pool.map(work, ["in_pool"] * 4)
        pool.close()
        pool.join()
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        list(executor.map(quick, range(3)))
    # A daemon's: its parent is gone when it works, and it has a session of its own.
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(reading)
            work("in_daemon")
            os.write(writing, b"x")
            os._exit(0)
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    assert os.read(reading, 1) == b""  # it has ended, or will at once
    work("in_main")


if __name__ == "__main__":
    main()
    # A child that comes back from the fork and ends as its parent would.
    if os.fork() == 0:
        work("in_fork_that_returns")
        raise SystemExit(9)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 9
