"""Begins as root, becomes another user, and writes into the recording far more than what was prepared for it before.

Arguments: how it becomes another user, how many spans of 4 KB it then writes, and a folder for what it measures of
itself. It waits for a file ``go`` in that folder before it begins, if it is told to with ``wait``, and for a file ``on``
in the middle with ``pause``. With ``hurry`` it does not rest between the spans before that.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

from tachograph.recorder import span

NOBODY = 65534
MUCH = {f"field_{number}": "x" * 190 for number in range(19)}
"""As much as a span takes: some 4 KB."""


def write_much(name: str, count: int, rest_s: float = 0.0005) -> None:
    for _ in range(count):
        with span(name, **MUCH):
            sum(range(5_000))
        if rest_s:
            time.sleep(rest_s)


def setuid() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def setresuid() -> None:
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def back_and_forth() -> None:
    for _ in range(4):
        os.seteuid(NOBODY)
        write_much("t", 300)
        os.seteuid(0)
        write_much("t", 100)
    setuid()


def users_of_threads() -> list[str]:
    """The user ids of every thread, the recorder's among them: real, effective, saved, of the file system."""
    found = set()
    for tid in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{tid}/status", encoding="utf-8") as file:
            found |= {" ".join(line.split()[1:]) for line in file if line.startswith("Uid:")}
    return sorted(found)


def descriptors() -> set[int]:
    """The open descriptors of this program, up to a number that it does not reach."""
    found = set()
    for number in range(256):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.add(number)
    return found


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.01)


def main() -> None:
    how, count, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    told = open(folder / "told.json", "w", encoding="utf-8")  # noqa: SIM115 - only root may open it
    before = descriptors()
    (folder / "ready").write_text(str(os.getpid()), encoding="utf-8")
    if "wait" in sys.argv:
        wait_for(folder / "go")
    write_much("r", 20)
    {"setuid": setuid, "setresuid": setresuid, "back_and_forth": back_and_forth}[how]()
    begin_ns, begin_cpu = time.monotonic_ns(), time.thread_time_ns()
    write_much("s", count // 2, *([0.0] if "hurry" in sys.argv else []))
    if "pause" in sys.argv:
        with span("middle"):
            told.write("\n")
            told.flush()
        wait_for(folder / "on")
    write_much("s", count - count // 2)
    spent, end_ns = time.thread_time_ns() - begin_cpu, time.monotonic_ns()
    json.dump({"begin_ns": begin_ns, "end_ns": end_ns, "cpu_ns": spent, "pid": os.getpid()}, told)
    told.close()
    print(users_of_threads(), sorted(descriptors() - before), os.getresgid())
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0)


main()
