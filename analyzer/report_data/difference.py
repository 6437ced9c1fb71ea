"""The result of a diff as its reports use it: metrics, tidy frames of the differences, and verdicts.

``diff/`` computes the frames and verdicts, ``difference_sections.py`` chooses and words what reports show of them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..profile.profile import Profile
from ..profile.question import Question
from ..recording.text import printable


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: ``column`` in a profile's frames, ``name`` in a diff."""

    name: str
    column: str
    unit: str
    """``s``, ``bytes``, ``bytes/s`` or ``calls``."""
    label: str
    sampled: str
    """The sampling unit: ``cpu``, ``wait``, ``blocks``, ``copies``; empty: measured, not sampled. ``calls`` and
    ``per call``: counted while watched, with an interval of their own."""
    judged: bool = True
    """True if a difference is the program's doing."""

    @property
    def more(self) -> str:
        """The verdict when it grew."""
        return "slower" if self.unit == "s" else "more"

    @property
    def less(self) -> str:
        """The verdict when it shrank."""
        return "faster" if self.unit == "s" else "less"


_TIMES = (
    Metric("cpu", "cpu_s", "s", "CPU", "cpu"),
    Metric("python", "python_s", "s", "Python", "cpu"),
    Metric("native", "native_s", "s", "native", "cpu"),
    Metric("kernel", "kernel_s", "s", "kernel", "cpu"),
    Metric("wait", "wait_s", "s", "waiting", "wait"),
    Metric("main_wait", "main_wait_s", "s", "waiting in main", "wait"),
    Metric("gpu_wait", "gpu_wait_s", "s", "waiting for GPU", "wait"),
    Metric("cpu_wait", "cpu_wait_s", "s", "ready, no processor", "wait", judged=False),
)
_SIZES = (
    Metric("memory.allocated", "allocated_bytes", "bytes", "allocated", "blocks"),
    Metric("memory.peak", "peak_bytes", "bytes", "peak memory", "blocks"),
    Metric("memory.live_at_peak", "live_at_peak_bytes", "bytes", "live at peak", "blocks"),
    Metric("memory.live_at_end", "live_at_end_bytes", "bytes", "live at end", "blocks"),
    Metric("memory.copied", "copied_bytes", "bytes", "copied", "copies"),
    Metric("memory.leak_rate", "leak_rate_bytes_per_s", "bytes/s", "leak rate", "blocks"),
)
SELF = (*_TIMES, *_SIZES)
"""Metrics of a place itself: of lines, functions, files (and times of threads)."""


def _total(metric: Metric) -> Metric:
    return Metric(
        f"total_{metric.name}", f"total_{metric.column}", metric.unit, f"{metric.label}, total", metric.sampled
    )


TOTAL = tuple(_total(metric) for metric in SELF if metric.name not in ("memory.peak", "memory.leak_rate"))
"""Metrics of ``SELF`` that include everything called from there."""

_OF_NATIVE = ("cpu", "kernel", "wait", "main_wait")
NATIVE = tuple(metric for metric in (*SELF, *TOTAL) if metric.name.removeprefix("total_") in _OF_NATIVE)
"""Metrics of a native function, itself and with what it called."""

TREE = tuple(
    metric for metric in SELF if metric.name not in ("memory.peak", "memory.leak_rate", "gpu_wait", "cpu_wait")
)
"""Metrics of a node of the merged call tree, with everything below it."""

CALLS = Metric("calls", "calls", "calls", "calls", "calls")
CALL_TIME = Metric("call_mean", "call_mean_s", "s", "time per call", "per call")
OF_CALLS = (CALLS, CALL_TIME)
"""Metrics of functions whose calls were watched. Neither is a part of a whole: a function that is called eight times
may be what matters."""


WALL = Metric("wall", "wall_s", "s", "wall time", "")
COLLECTING = Metric("gc", "gc_s", "s", "garbage collection", "cpu")
PEAK = Metric("memory.peak", "peak_bytes", "bytes", "peak memory", "")
RESIDENT = Metric("memory.resident_peak", "resident_peak_bytes", "bytes", "peak resident set", "")
_MEASURED = tuple(
    Metric(metric.name, metric.column, metric.unit, metric.label, "")
    for metric in _SIZES
    if metric.name not in ("memory.peak", "memory.leak_rate")
)
OVERALL = (WALL, *_TIMES, COLLECTING, PEAK, RESIDENT, *_MEASURED)
"""Metrics of the program as a whole. Bytes are exact there."""

BY_NAME = {metric.name: metric for metric in (*SELF, *TOTAL, *OF_CALLS, *OVERALL)}


SLOWER, FASTER, MORE, LESS = "slower", "faster", "more", "less"
NO_EVIDENCE, UNKNOWN, NOT_JUDGED = "no evidence", "unknown", "not_judged"
VERDICTS = (SLOWER, FASTER, MORE, LESS, NO_EVIDENCE, UNKNOWN, NOT_JUDGED)
"""``no evidence``: the interval includes 0, or the difference is too small to matter. ``not_judged``: these runs cannot
tell, whatever the difference is. ``unknown``: one side's amount is not known, or the row of the other side."""
OPEN = (NO_EVIDENCE, UNKNOWN, NOT_JUDGED)
"""Verdicts that say of no change that it is certain."""


def verdict_text(verdict: str) -> str:
    """A verdict as people read it."""
    return verdict.replace("_", " ")


_Array = NDArray[np.float64]


class Judged(enum.Enum):
    """The metrics on which the runs allow verdicts."""

    EVERYTHING = enum.auto()
    BYTES = enum.auto()
    """A busy machine changes how long a program takes, and not how much memory it asks for."""
    COUNTERS = enum.auto()
    """One run a side tells nothing of how much runs differ; what is counted hardly does."""
    NOTHING = enum.auto()

    def includes(self, metric: Metric) -> bool:
        """True if there can be verdicts on this metric."""
        if self is Judged.COUNTERS:
            return metric.name.removeprefix("total_") == "memory.allocated"
        return self is Judged.EVERYTHING or (self is Judged.BYTES and metric.unit == "bytes")


class Status(enum.StrEnum):
    """The fate of a line, function or file between the base and the new recording."""

    SAME = "same"
    EDITED = "edited"
    MOVED = "moved"
    RENAMED = "renamed"
    VANISHED = "vanished"
    NEW = "new"
    NOT_FOLLOWED = "not followed"
    """Unknown: the file changed, and the recordings do not hold its text."""


@dataclass(frozen=True)
class ComparedRun:
    """A recording that was compared, with its whole profile."""

    path: Path
    profile: Profile

    @property
    def name(self) -> str:
        """The name of the recording in messages."""
        return printable(self.path.name or str(self.path), 80)


@dataclass(frozen=True)
class Interval:
    """Differences or ratios with the ends of their intervals, by row."""

    value: _Array
    low: _Array
    high: _Array


class Evidence(Protocol):
    """Estimates of the difference ``new - factor * base`` by row, from the runs of both sides."""

    def interval(self, alpha: float) -> Interval:
        """The difference with its interval of confidence 1 - ``alpha``."""

    def relative(self, alpha: float) -> Interval:
        """The relative change with its interval; infinite if the base may be 0."""


@dataclass(frozen=True)
class Level:
    """One table of a diff: lines, functions, files, threads, nodes of the call tree, or the whole program.

    ``places`` has a row for each row that was compared. Columns: status (``Status``), and for

    - lines: file, line, function, source, and file, line, source with ``base_`` and ``new_`` in front;
    - functions: function, file, line (its first), and the same with ``base_`` and ``new_`` in front;
    - native_functions: function, module (its library's short name, for display), and library (file name of its module),
      file and line (of its source, null where no debug information was recorded), these also with ``base_`` and
      ``new_`` in front;
    - files: file, base_file, new_file; threads: name;
    - calls: parent (row of the caller, -1 at the root), function, file, line (first line of the function).

    Without a prefix they are as the new recording has them, or as the base has them for what vanished.

    ``values`` is long: row (of ``places``), metric, base, new (means of the runs), difference, low, high (of its
    interval), change (new / base - 1), change_low, change_high, p, verdict. NaN is unknown, an infinite change is one
    from nothing. Rows in which a metric is 0 on both sides are left out.

    ``families`` says for each metric how many rows were compared (those with too little in them to ever tell are
    not), the ``alpha`` at which each of them was judged so that at most 1 % of the verdicts are wrong (the same for
    all tables but that of the totals), and how many verdicts there are. The intervals in ``values`` have the
    confidence 1 - alpha.
    """

    name: str
    places: pd.DataFrame
    values: pd.DataFrame
    families: pd.DataFrame
    evidence: Callable[[str, float], Evidence] = field(repr=False)
    """Makes the evidence of a metric (its name) and a factor; only for metrics for which ``knows`` is true."""

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that both sides know."""
        return [BY_NAME[name] for name in self.families["metric"].tolist()]

    def knows(self, name: str) -> bool:
        """True if both sides know a metric."""
        return bool((self.families["metric"] == name).any())

    def metric(self, name: str) -> pd.DataFrame:
        """Places with the values of one metric, the largest difference first; the index is the row."""
        of_metric = self.values[self.values["metric"] == name].set_index("row").drop(columns="metric")
        frame = self.places.join(of_metric, how="inner")
        order = frame["difference"].abs().sort_values(ascending=False, kind="stable").index
        return frame.loc[order]

    def compared(self, name: str) -> int:
        """Number of rows compared by a metric; 0 if it is unknown."""
        return self._of_family(name, "compared")

    def verdicts(self, name: str) -> int:
        """Number of rows with a verdict by a metric; 0 if it is unknown."""
        return self._of_family(name, "verdicts")

    def _of_family(self, name: str, column: str) -> int:
        cells = self.families.loc[self.families["metric"] == name, column]
        return int(cells.iloc[0]) if len(cells) else 0


@dataclass(frozen=True, slots=True)
class Summary:
    """The answer in a word (``same``, ``unknown``, ``mixed``, or a verdict) and a sentence."""

    verdict: str
    sentence: str


@dataclass(frozen=True)
class DiffResult:
    """Two sides compared. ``base`` and ``new`` hold the runs, each with its whole ``Profile``."""

    base: list[ComparedRun]
    new: list[ComparedRun]
    question: Question
    scope: str
    widened: bool
    shares: bool
    """True if lines, functions, files, threads and calls are compared as shares (0..1) of each run's total."""
    spread: float | None
    """The spread between runs that the user stated, None where it was measured or is unknown."""
    summary: Summary
    unjudged: str | None
    """Why there are no verdicts, or none on times, None where there can be."""
    judged: Judged
    """The metrics on which there can be verdicts."""
    remarks: list[str]
    totals: Level
    lines: Level
    functions: Level
    native_functions: Level
    """They divide the time of ``functions`` once more."""
    files: Level
    threads: Level
    calls: Level
    """The merged call tree: every node that a run of either side has, with what is in it and below it."""

    @property
    def levels(self) -> dict[str, Level]:
        """All levels by name."""
        levels = (
            self.totals,
            self.files,
            self.functions,
            self.native_functions,
            self.lines,
            self.threads,
            self.calls,
        )
        return {level.name: level for level in levels}


class Outcome(enum.StrEnum):
    """The result of a condition."""

    FAILED = "failed"
    """The interval lies above what is allowed."""
    PASSED = "passed"
    """The interval lies within what is allowed."""
    UNDECIDED = "undecided"
    """The interval includes what is allowed: the runs do not tell, and nothing fails."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that fails if a metric grew by more than ``amount`` (a share of the base if ``relative``)."""

    text: str
    level: str
    """``totals``, ``files``, ``functions``, ``native_functions``, ``lines`` or ``threads``."""
    place: str | None
    metric: str
    amount: float
    relative: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """A condition with the row that decided it. ``low`` and ``high`` have the unit of the condition's amount."""

    condition: Condition
    outcome: Outcome
    where: str | None
    value: float
    low: float
    high: float
