"""Columns of reports, the same for all renderers; and those of lines, functions and files beside CPU time and waiting.

A column's unit decides how a renderer writes and hides it. So a measure that has an entry here is on the page, in the
exact figures of a row and in Markdown; the terminal's table of lines chooses by name what it has room for
(``render/terminal/line_columns.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..profile.span_sums import COLLECTOR_COLUMN


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and what it is called where; an empty text leaves it out there."""

    name: str
    """Its name in the rows."""
    unit: str
    """``s``; ``time`` (of any length), ``bytes``, ``share``, ``MB/s``, ``count``, ``calls`` (an estimated count),
    ``mean`` (a number that is a mean) or ``text``."""
    title: str = ""
    """Its head on a page."""
    key: str = ""
    """Short name: of ``--sort`` for a measure of lines, and in a page's data where that is another than ``name``."""
    hint: str = ""
    rank: int = 1
    """1 for a column that is always there, 2 for one that goes where there is no room, 3 for one that goes first."""
    head: str = ""
    """Its head in a terminal, ``width`` characters wide; it is no column there without one."""
    width: int = 8
    first: int = 0
    """A terminal shows the columns with the least first, else in their order."""
    main: bool = False
    """The figure that the table is about."""
    whole: bool = False
    """True if its values are of the whole time, whatever window is looked at."""
    interval: bool = False
    """True if the ends of its interval are in the rows, as ``_low`` and ``_high``, and are shown beside it."""
    part: str = ""
    """The part of the time, or the resource, whose colour it has; empty for none."""
    exact: str = ""
    """Its name among the exact figures of a row."""
    brief: str = ""
    """Its name in a sentence."""


LINE_MEASURES = (
    Column(
        "pool_cpu_s",
        "s",
        key="pool",
        part="native",
        title="native threads",
        hint="CPU time that native threads, such as a numerical library's, spent for the line: no part of its own",
        rank=2,
        head="pool %",
        width=8,
    ),
    Column(
        "await_s",
        "s",
        key="await",
        part="wait",
        title="awaited",
        hint="Time that suspended tasks stood here, added up over tasks: no thread's time",
        rank=2,
        head="await",
        width=8,
        exact="awaited by tasks",
    ),
    Column("awaiting_peak", "count", exact="   tasks at a time, at most"),
    Column(
        COLLECTOR_COLUMN,
        "s",
        key="gc",
        title="GC",
        hint="Time in garbage collections that the line set off, a part of its Python time",
        rank=2,
    ),
    Column(
        "total_gpu_share",
        "share",
        key="gpu",
        part="gpu",
        title="GPU busy",
        hint="How busy the GPU was while the line was on the main thread's stack, running or waiting",
        head="GPU %",
        width=7,
    ),
    Column(
        "peak_bytes",
        "bytes",
        key="peak",
        part="memory",
        title="peak",
        hint="The most that its blocks ever held",
        rank=2,
        head="peak",
        width=8,
        exact="its own peak",
        brief="most",
    ),
    Column("average_bytes", "bytes", head="average", width=9, exact="on average, each time"),
    Column(
        "live_at_peak_bytes",
        "bytes",
        key="live",
        part="memory",
        title="at peak",
        hint="Held when the program held the most",
        rank=2,
        head="at peak",
        width=9,
        exact="held at the program's peak",
        brief="at the peak",
    ),
    Column("touched_at_peak_bytes", "bytes", exact="   touched by then"),
    Column(
        "live_at_resident_peak_bytes",
        "bytes",
        key="resident",
        part="memory",
        title="at resident peak",
        hint="Held when the most of the program's memory was resident, that is in RAM",
        rank=3,
        head="resident",
        width=10,
        exact="held when most was resident",
    ),
    Column("live_at_end_bytes", "bytes", head="at end", width=8, exact="held at the end", brief="at the end"),
    Column("allocated_bytes", "bytes", head="alloc.", width=8, brief="allocated"),
    Column("copied_bytes", "bytes", brief="copied"),
    Column("python_fraction", "share", head="Py %", width=6, exact="allocated by Python"),
    Column("copy_mb_per_s", "MB/s", head="copy/s", width=8),
)
"""In the order in which reports list them: those of time, then those of memory."""

BY_NAME: Mapping[str, Column] = {measure.name: measure for measure in LINE_MEASURES}

ON_PAGES = tuple(measure for measure in LINE_MEASURES if measure.title or measure.exact)
"""Measures that a page needs the values of."""
