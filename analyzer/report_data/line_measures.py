"""The measures that reports show beside CPU time and waiting of each line, function and file, all of the whole time.

A measure is a column of the profile's frames. Its unit decides how a renderer writes and hides it, so one that has an
entry here is on the page, in the exact figures of a row and in Markdown; the terminal's tables choose by name what they
have room for (``render/terminal/line_columns.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..profile.span_sums import COLLECTOR_COLUMN


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of the profile's frames, and what it is called where; an empty text leaves it out there."""

    name: str
    unit: str
    """``s``, ``bytes``, ``share`` or ``MB/s``."""
    key: str = ""
    """Short name, that of ``--sort`` where reports can be sorted by it."""
    part: str = ""
    """The part of the time, or the resource, whose colour its bar has; empty for no bar."""
    title: str = ""
    """Head of a column on a page."""
    hint: str = ""
    rank: int = 1
    """1 for a column that is always there, 2 for one that goes where there is no room, 3 for one that goes first."""
    head: str = ""
    """Head of a column in a terminal, ``width`` characters wide."""
    width: int = 0
    exact: str = ""
    """Among the exact figures of a row."""
    brief: str = ""
    """In a sentence."""


LINE_MEASURES = (
    Measure(
        *("pool_cpu_s", "s", "pool", "native"),
        title="native threads",
        hint="CPU time that native threads, such as a numerical library's, spent for the line: no part of its own",
        rank=2,
        head="pool %",
        width=8,
    ),
    Measure(
        *(COLLECTOR_COLUMN, "s", "gc"),
        title="GC",
        hint="Time in garbage collections that the line set off, a part of its Python time",
    ),
    Measure(
        *("total_gpu_share", "share", "gpu", "gpu"),
        title="GPU busy",
        hint="How busy the GPU was while the line was on the main thread's stack, running or waiting",
        head="GPU %",
        width=7,
    ),
    Measure(
        *("peak_bytes", "bytes", "peak", "memory"),
        title="peak",
        hint="The most that its blocks ever held",
        rank=2,
        head="peak",
        width=8,
        exact="its own peak",
        brief="most",
    ),
    Measure("average_bytes", "bytes", head="average", width=9, exact="on average, each time"),
    Measure(
        *("live_at_peak_bytes", "bytes", "live", "memory"),
        title="at peak",
        hint="Held when the program held the most",
        rank=2,
        head="at peak",
        width=9,
        exact="held at the program's peak",
        brief="at the peak",
    ),
    Measure("touched_at_peak_bytes", "bytes", exact="   touched by then"),
    Measure(
        *("live_at_resident_peak_bytes", "bytes", "resident", "memory"),
        title="at resident peak",
        hint="Held when the most of the program's memory was resident, that is in RAM",
        rank=3,
        head="resident",
        width=10,
        exact="held when most was resident",
    ),
    Measure("live_at_end_bytes", "bytes", head="at end", width=8, exact="held at the end", brief="at the end"),
    Measure("allocated_bytes", "bytes", head="alloc.", width=8, brief="allocated"),
    Measure("copied_bytes", "bytes", brief="copied"),
    Measure("python_fraction", "share", head="Py %", width=6, exact="allocated by Python"),
    Measure("copy_mb_per_s", "MB/s", head="copy/s", width=8),
)
"""In the order in which reports list them: those of time, then those of memory."""

BY_NAME: Mapping[str, Measure] = {measure.name: measure for measure in LINE_MEASURES}

ON_PAGES = tuple(measure for measure in LINE_MEASURES if measure.title or measure.exact)
"""Measures that a page needs the values of."""
