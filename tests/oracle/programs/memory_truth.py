"""The truth of a memory program: what it allocated, copied or held by name, and moments at which the recorder was made
to write a row of exact counts.

Every memory program of this folder is run as ``python PROGRAM TRUTH [ARGUMENT...]`` and leaves it in TRUTH as
JSON. Lines that allocate what is called ``x`` there carry the comment ``# @x``.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FENCE = 24 << 20
"""Bytes: more than twice the recorder's threshold, which is thus crossed wherever the count stood."""


def fence() -> int:
    """Make the recorder write a row when a block comes and another when it goes; the monotonic time afterwards."""
    block = bytearray(FENCE)
    del block
    return time.monotonic_ns()


def looked(seconds: float = 0.3) -> None:
    """Wait until the recorder's own thread has seen what is in memory now, which it looks for four times a second.

    On a busy machine it may come late: what it finds that no thread claims counts after a second, and looks at many
    gigabytes rest for twenty times as long as they took. Where there is none this is a sleep.
    """
    time.sleep(seconds)
    tasks = [task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text() == "tachograph\n"]
    passed = {task: passes(task) for task in tasks}
    end = time.monotonic() + 60
    while any(passes(task) < passed[task] + 3 for task in tasks) and time.monotonic() < end:
        time.sleep(0.02)


def passes(task: Path) -> int:
    """How often a thread has come to rest."""
    (line,) = (line for line in (task / "status").read_text().splitlines() if line.startswith("voluntary_ctxt"))
    return int(line.split()[1])


class MemoryTruth:
    """Bytes by name, windows between fences, and other facts."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.windows: dict[str, tuple[int, int]] = {}
        self.facts: dict[str, object] = {}

    def add(self, name: str, size: int) -> None:
        self.sizes[name] = self.sizes.get(name, 0) + size

    @contextmanager
    def window(self, name: str) -> Iterator[None]:
        """Whatever is allocated and freed inside lies between two rows of the recording, beside the fence's own."""
        begin = fence()
        yield
        self.windows[name] = (begin, fence())

    def write(self) -> None:
        document = {"spent": {}, "sizes": self.sizes, "windows": self.windows, "facts": self.facts, "fence": FENCE}
        Path(sys.argv[1]).write_text(json.dumps(document), encoding="utf-8")
