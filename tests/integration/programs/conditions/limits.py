"""Limits that the program sets for itself: on files, their size, stacks, pending signals, address space."""

import os
import resource
import signal
import sys
import threading
import time


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


def churn(seconds: float) -> None:
    end, number = time.process_time() + seconds, 0
    while time.process_time() < end:
        number += 1
        source = f"def f{number}_{'x' * 3000}(): return sum(range(2000))\nf{number}_{'x' * 3000}()\n"
        exec(compile("\n" * (number % 90) + source, "made up", "exec"))


def limit(name: str, value: int) -> None:
    resource.setrlimit(getattr(resource, name), (value, value))


def small_threads(size: int) -> None:
    threading.stack_size(size)
    threads = [threading.Thread(target=burn, args=(0.05,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


burn(0.05)
what = sys.argv[1]
if what == "files":
    limit("RLIMIT_NOFILE", 3)
    churn(0.4)
    try:
        open("/dev/null")
    except OSError as error:
        print(error.errno)
elif what == "size":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    limit("RLIMIT_FSIZE", 4096)
    churn(0.4)
    small_threads(1 << 20)
elif what == "stack":
    limit("RLIMIT_STACK", 256 << 10)
    burn(0.1)
    small_threads(64 << 10)
    small_threads(56 << 10)
elif what == "signals":
    limit("RLIMIT_SIGPENDING", 0)
    small_threads(1 << 20)
    handled: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, frame: handled.append(number))
    for _ in range(3):
        signal.raise_signal(signal.SIGUSR1)
        burn(0.02)
    print(handled)
elif what == "processes":
    limit("RLIMIT_NPROC", 1)
    churn(0.15)
print(what, "done")
