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
