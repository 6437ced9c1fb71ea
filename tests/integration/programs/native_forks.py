"""Children that native code forks: the interpreter is not told, unless the program tells it."""

import ctypes
import os
import subprocess
import sys
import threading
import time

BUSY_S = 0.4


def burn(seconds: float = BUSY_S) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1_000))


def wait_for(child: int) -> None:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def fork(library: ctypes.CDLL, tells: bool, then: object) -> None:
    child = library.fork()
    if child == 0:
        if tells:
            ctypes.pythonapi.PyOS_AfterFork_Child()
        then() if callable(then) else None
        os._exit(3)
    wait_for(child)


def fork_by_python() -> None:
    child = os.fork()
    if child == 0:
        burn()
        os._exit(3)
    wait_for(child)


def fork_beside(library: ctypes.CDLL) -> None:
    """When the main thread waits: one that asks for the interpreter's lock at that moment is waited for in the child."""
    time.sleep(0.5)
    fork(library, False, burn)


def with_thread() -> None:
    """A thread of the child's own, which began before the child ran much Python."""
    thread = threading.Thread(target=burn)
    thread.start()
    burn()
    thread.join()


def main() -> None:
    released, held = ctypes.CDLL(None), ctypes.PyDLL(None)
    match sys.argv[1]:
        case "released":
            fork(released, False, burn)
        case "held":
            fork(held, False, burn)
        case "told":
            fork(held, True, burn)
        case "nested":
            fork(held, False, lambda: fork(held, False, burn))
        case "python":
            fork(held, False, fork_by_python)
        case "threads":
            fork(held, False, with_thread)
        case "exec":
            # Which asks for a fork, not a vfork, and runs no Python before the program.
            subprocess.run(["/bin/echo", "started"], user=os.getuid(), check=True)
        case "beside":
            thread = threading.Thread(target=fork_beside, args=(held,))
            thread.start()
            thread.join()


main()
