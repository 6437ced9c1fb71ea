"""Every way in which a Python process goes on in a copy of itself."""

import multiprocessing
import os
import threading
import time
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


def beside() -> list[int]:
    """The threads that there are beside this one."""
    return [thread.native_id or 0 for thread in threading.enumerate() if thread is not threading.current_thread()]


def wait_until_gone(threads: list[int]) -> None:
    """A thread that has been joined is counted for a moment more, by CPython's warning of a fork beside threads, too."""
    while any(os.path.exists(f"/proc/self/task/{thread}") for thread in threads):
        time.sleep(0.001)


def main() -> None:
    context = multiprocessing.get_context("fork")
    forked("in_fork")
    forked("in_fork_of_fork_1", lambda: forked("in_fork_of_fork_2"))
    thread = threading.Thread(target=forked, args=("in_fork_of_thread",), name="forker")
    thread.start()
    ended = [thread.native_id or 0]
    thread.join()
    wait_until_gone(ended)
    # Its threads are not the child's, and are in the middle of something.
    stop = threading.Event()
    others = [threading.Thread(target=lambda: [sum(range(99)) for _ in iter(stop.is_set, True)]) for _ in range(3)]
    for other in others:
        other.start()
    forked("in_fork_beside_threads")
    stop.set()
    ended = beside()
    for other in others:
        other.join()
    wait_until_gone(ended)
    process = context.Process(target=work, args=("in_process",))
    process.start()
    process.join()
    with context.Pool(2) as pool:
        pool.map(work, ["in_pool"] * 4)
        ended = beside()
        pool.close()
        pool.join()
    wait_until_gone(ended)
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        list(executor.map(quick, range(3)))
        ended = beside()
    wait_until_gone(ended)
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
