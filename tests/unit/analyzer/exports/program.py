"""A recording whose every weight is known, and what each function of it has to have in any format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unit.analyzer.recordings import MS, NATIVE_FRAME, OTHER_FRAME, START, Builder

HOSTILE = "odd;name \x1b[31m\n<b>&"
"""A function's name that would break a format, a terminal and a page; it is shown with escapes."""

SHOWN = "odd;name \\x1b[31m\\x0a<b>&"


@dataclass(frozen=True)
class Truth:
    """Weights of functions in whole ns, by name: of their own, and with what they called (once for each stack)."""

    own: dict[str, int]
    total: dict[str, int]


CPU = Truth(
    own={"work": 35 * MS, "fib": 60 * MS, SHOWN: 7 * MS, "<no Python stack>": 5 * MS, "<torn stack>": 3 * MS},
    total={
        "<module>": 102 * MS,
        "work": 35 * MS,
        "fib": 60 * MS,
        SHOWN: 7 * MS,
        "<no Python stack>": 5 * MS,
        "<torn stack>": 3 * MS,
    },
)
"""All threads."""

WAIT = Truth(own={"work": 40 * MS, "<module>": 100 * MS}, total={"<module>": 140 * MS, "work": 40 * MS})
ALLOCATED = Truth(own={"work": 1500, "fib": 2000}, total={"<module>": 3500, "work": 1500, "fib": 2000})
LIVE = Truth(own={"work": 1000, "fib": 2000}, total={"<module>": 3000, "work": 1000, "fib": 2000})
END = Truth(own={"work": 1000}, total={"<module>": 1000, "work": 1000})
COPIED = Truth(own={"work": 4000}, total={"<module>": 4000, "work": 4000})
TIMES = [("cpu", CPU), ("wait", WAIT)]
SIZES = [("allocated", ALLOCATED), ("live", LIVE), ("end", END), ("copied", COPIED)]
EVERY = [*TIMES, *SIZES]


def write(path: Path) -> Path:
    """Writes the recording: <module> of app.py calls work (lines 11 and 12), fib calls itself, a second thread."""
    made = Builder(path)
    app, library = made.file("/srv/app/app.py"), made.file("/usr/lib/python3.13/lib.py")
    module, work = made.code(app, "<module>", 1), made.code(app, "work", 10)
    fib, odd = made.code(app, "fib", 30), made.code(library, HOSTILE, 1)
    other = made.thread("pool-1")
    first, second = made.stack((module, 0), (work, 1)), made.stack((module, 0), (work, 2))
    made.cpu(first, 10)
    made.cpu(first, 15)
    made.cpu(second, 10, native_frame=NATIVE_FRAME)
    deep = made.stack((module, 3), (fib, 1), (fib, 1), (fib, 0))
    made.cpu(deep, 40)
    made.cpu(made.stack((module, 3), (fib, 0)), 20, native_frame=OTHER_FRAME)
    made.cpu(made.stack((module, 5), (odd, 7)), 7, thread=other)
    made.cpu(None, 5, thread=other)
    made.cpu(None, 3, stack_state=2)
    made.wait(first, 100, 140)
    made.wait(made.stack((module, 6)), 200, 300, thread=other)
    # Ready to run, and no free processor: that is not waiting.
    made.wait(first, 400, 450, target=7)
    made.memory("start", 0, 0)
    made.block(first, 1000, 10)
    made.block(first, 500, 20, freed_ms=30)
    made.block(deep, 2000, 40, freed_ms=9000)
    made.copy(first, 4000, 50)
    made.memory("tick", 100, 3000, obj_allocated_bytes=3500, obj_freed_bytes=500)
    made.memory("end", 10_000, 1000, peak_bytes=3000, obj_freed_bytes=2000)
    # Threads without samples are in no file.
    made.thread("idle")
    return made.write()


__all__ = ["CPU", "END", "EVERY", "HOSTILE", "MS", "SHOWN", "SIZES", "START", "TIMES", "WAIT", "Truth", "write"]
