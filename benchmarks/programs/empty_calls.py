"""What tracing one call takes: loops that call nothing, an empty function, and a function in C.

    python empty_calls.py COUNT REPORT       # writes the seconds of each loop

Under a profiler that traces, the differences are what an event takes of the caller's time and of the callee's.
"""

import json
import sys
import time
from pathlib import Path


def empty() -> None:
    """Does nothing."""


def no_call(count: int) -> None:
    """The loop alone."""
    for _ in range(count):
        pass


def python_call(count: int) -> None:
    """Calls a function in Python."""
    for _ in range(count):
        empty()


def c_call(count: int) -> None:
    """Calls a function in C."""
    for _ in range(count):
        len("")


def main() -> None:
    """Does what the command line says."""
    count, spent = int(sys.argv[1]), {}
    for loop in (no_call, python_call, c_call):
        begin = time.perf_counter()
        loop(count)
        spent[loop.__name__] = time.perf_counter() - begin
    Path(sys.argv[2]).write_text(json.dumps(spent), encoding="utf-8")


if __name__ == "__main__":
    main()
