"""What programs in containers do, and what becomes of it: each line is the same in every run under one restriction."""

import errno
import mmap
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable

# The kernel may not be through yet with a thread that was joined, and CPython 3.12 and later warn of a fork beside it.
warnings.simplefilter("ignore", DeprecationWarning)


def what(function: Callable[[], object]) -> str:
    """What came out, or the name of the error."""
    try:
        return str(function())
    except MemoryError:
        return "MemoryError"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "OSError")
    except RuntimeError as error:
        return str(error)


def work() -> int:
    end, total = time.thread_time() + 0.05, 0
    while time.thread_time() < end:
        total += len(sorted(range(1000), reverse=True))
    return total % 1000


def threads() -> int:
    results: list[int] = []
    running = [threading.Thread(target=lambda: results.append(work())) for _ in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return len(results)


def forks() -> list[int]:
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            work()
            os._exit(number)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def programs() -> list[str]:
    command = [sys.executable, "-c", "print(sum(range(100)))"]
    python = subprocess.run(command, capture_output=True, text=True, check=False)
    shell = subprocess.run("echo shell; exit 4", shell=True, capture_output=True, text=True, check=False)
    return [f"{done.returncode} {done.stdout.strip()} {done.stderr.strip()}" for done in (python, shell)]


def pool() -> list[int]:
    with multiprocessing.get_context("fork").Pool(2) as workers:
        return workers.map(abs, [-1, -2, -3])


def open_files() -> int:
    held: list[int] = []
    try:
        while len(held) < 100:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for descriptor in held:
        os.close(descriptor)
    return len(held)


def large_file() -> int:
    with tempfile.TemporaryFile() as file:
        written = file.write(bytes(6 << 20))
        file.flush()
        return written


def shared() -> int:
    with open(f"/dev/shm/contained-{os.getpid()}", "w+b") as file:
        os.unlink(file.name)
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
        return len(mmap.mmap(file.fileno(), 1 << 20))


def much_memory() -> int:
    return sum(len(block) for block in [bytearray(100 << 20) for _ in range(10)]) >> 20


def many_threads() -> str:
    gate, held = threading.Event(), []
    try:
        for _ in range(400):
            thread = threading.Thread(target=gate.wait)
            thread.start()
            held.append(thread)
    finally:
        gate.set()
        for thread in held:
            thread.join()
    return "all"


def writes() -> str:
    with open("/contained", "x", encoding="utf-8"):  # noqa: PTH123
        os.unlink("/contained")
    return "a file in /"


for each in (threads, forks, programs, pool, open_files, large_file, shared, much_memory, many_threads, writes):
    print(each.__name__, what(each), flush=True)
sys.exit(3)
