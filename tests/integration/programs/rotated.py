"""Works until told to stop, holds memory meanwhile, and writes down what it did. Arguments: a folder.

A file ``NAME.do`` in the folder asks for something, a file ``NAME.done`` says that it was done. The file ``pid`` has
its process id.
"""

import json
import os
import sys
import time
from pathlib import Path

FOLDER = Path(sys.argv[1])


def work() -> None:
    """20 ms of CPU. A thread that reads its clock all the time meets its timer late where others want the processor."""
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        sum(range(5000))


def early() -> bytearray:
    return bytearray(24 << 20)


def released() -> bytearray:
    return bytearray(16 << 20)


def late() -> bytearray:
    return bytearray(8 << 20)


def asked(name: str) -> bool:
    """Whether it was asked for, and not done yet."""
    return (FOLDER / f"{name}.do").exists() and not (FOLDER / f"{name}.done").exists()


def main() -> None:
    begin_ns = time.thread_time_ns()
    (FOLDER / "pid").write_text(str(os.getpid()), encoding="utf-8")
    held = {"early": early(), "released": released()}
    while not asked("stop"):
        work()
        if asked("release"):
            del held["released"]
            (FOLDER / "release.done").touch()
        if asked("late"):
            held["late"] = late()
            (FOLDER / "late.done").touch()
        (FOLDER / "truth.tmp").write_text(json.dumps([begin_ns, time.thread_time_ns()]), encoding="utf-8")
        (FOLDER / "truth.tmp").rename(FOLDER / "truth.json")


main()
