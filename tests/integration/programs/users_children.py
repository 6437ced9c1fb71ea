"""Becomes another user, and then has children: a fork, a fork of a fork, a pool, and one that goes into a cage."""

import os
import sys
import time

from tachograph.recorder import span

NOBODY = 65534
MUCH = {f"field_{number}": "x" * 190 for number in range(19)}
"""As much as a span takes: some 4 KB."""


def child(name: str, deeper: bool = False) -> None:
    """Fork, do something that fills more than the first segments, and end; the parent waits."""
    pid = os.fork()
    if pid == 0:
        for _ in range(1000):
            with span(name, **MUCH):
                sum(range(1000))
            time.sleep(0.0005)
        if deeper:
            child("d")
        os._exit(0)
    os.waitpid(pid, 0)


def main() -> None:
    with span("r", **MUCH):  # what it imports may lie where only root can read
        sum(range(1000))
    if sys.argv[1] == "chroot":
        os.mkdir("cage")
        os.chroot("cage")
        os.chdir("/")
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    child("a", deeper=True)
    for name in "bc":
        child(name)
    print("done")


main()
