"""Works in a corner, ``cornered.py CORNER``: the same line is written whether it is recorded, attached to, or neither.

It says ``ready`` by a file of that name, works until there is one named ``go``, and writes what came out to ``out``.
"""

import ctypes
import os
import resource
import signal
import sys
import threading
import time


def work() -> int:
    return sum(number * number % 7 for number in range(20_000))


def take_all_descriptors() -> None:
    """Not one is left, as in a server that leaks them."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    while True:
        try:
            os.dup(1)
        except OSError:
            return


def close_streams() -> None:
    for number in (0, 1, 2):
        os.close(number)


def enter_sandbox() -> None:
    """A filter that ends the process at most calls that a recorder could make."""
    assert ctypes.CDLL("./filters.so").enter() == 0


BEFORE = {"no-descriptors": take_all_descriptors, "closed-streams": close_streams}
AFTER = {"sandbox": enter_sandbox}


def main() -> None:
    corner = sys.argv[1]
    results = []
    threads = [threading.Thread(target=lambda: results.append(work())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Opened now: later there may be no descriptor, or no right to open one.
    out = os.open("out", os.O_WRONLY | os.O_CREAT, 0o600)
    ready = os.open("ready.part", os.O_WRONLY | os.O_CREAT, 0o600)
    BEFORE.get(corner, lambda: None)()
    os.write(ready, b"ready")
    os.rename("ready.part", "ready")
    rounds = 0
    end = time.monotonic() + 120
    while not os.access("go", os.F_OK) and time.monotonic() < end:
        results.append(work())
        if corner == "closed-streams":
            for number in (0, 1, 2):
                try:
                    rounds += os.write(number, b"into nothing")
                except OSError:
                    rounds += 0
    AFTER.get(corner, lambda: None)()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        results.append(work())
    names = sorted(name for name in os.environ if name != "TACHOGRAPH_STANDBY")  # which the user has set
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGPROF)]
    what = (set(results) == {work()}, rounds, threading.active_count(), handlers, sys.path[1:], names)
    os.write(out, repr(what).encode())
    os._exit(7) if corner == "sandbox" else sys.exit(7)


main()
