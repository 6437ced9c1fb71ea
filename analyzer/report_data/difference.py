"""The result of a diff: tidy frames and verdicts. ``diff/`` computes them, ``render/`` shows them."""

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
from .difference_metrics import BY_NAME, Metric

SLOWER, FASTER, MORE, LESS = "slower", "faster", "more", "less"
NO_EVIDENCE, UNKNOWN = "no evidence", "unknown"
VERDICTS = (SLOWER, FASTER, MORE, LESS, NO_EVIDENCE, UNKNOWN)
"""``no evidence``: the interval includes 0, the difference is too small to matter, or the runs cannot tell.
``unknown``: one side's amount is not known, or which row of the other side this is."""

_Array = NDArray[np.float64]


class Judged(enum.Enum):
    """What the runs can tell of."""

    EVERYTHING = enum.auto()
    BYTES = enum.auto()
    """A busy machine changes how long a program takes, and not how much memory it asks for."""
    NOTHING = enum.auto()

    def includes(self, metric: Metric) -> bool:
        """Whether they can tell of a difference by this metric."""
        return self is Judged.EVERYTHING or (self is Judged.BYTES and metric.unit == "bytes")


class Status(enum.StrEnum):
    """What became of something between the base and the new recording."""

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
        """How it is called in messages."""
        return printable(self.path.name or str(self.path), 80)


@dataclass(frozen=True)
class Interval:
    """Differences or ratios with the ends of their intervals, by row."""

    value: _Array
    low: _Array
    high: _Array


class Evidence(Protocol):
    """What two sides say about the difference ``new - factor * base``, by row."""

    def interval(self, alpha: float) -> Interval:
        """The difference with its interval of confidence 1 - ``alpha``."""

    def relative(self, alpha: float) -> Interval:
        """The relative change with its interval; infinite if the base may be 0."""


@dataclass(frozen=True)
class Level:
    """What was compared row by row: lines, functions, files, threads, nodes of the call tree, or the whole program.

    ``places`` has a row for each row that was compared. Columns: status (``Status``), and for

    - lines: file, line, function, source, and file, line, source with ``base_`` and ``new_`` in front;
    - functions: function, file, line (its first), and the same with ``base_`` and ``new_`` in front;
    - native_functions: function, and library (file name of its module), file and line (of its source, null where no
      debug information was recorded), these also with ``base_`` and ``new_`` in front;
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
    """What the rows say about a metric (its name) and a factor; only for metrics that ``knows`` says yes to."""

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that both sides know."""
        return [BY_NAME[name] for name in self.families["metric"].tolist()]

    def knows(self, name: str) -> bool:
        """Whether both sides know a metric."""
        return bool((self.families["metric"] == name).any())

    def metric(self, name: str) -> pd.DataFrame:
        """Places with the values of one metric, the largest difference first; the index is the row."""
        of_metric = self.values[self.values["metric"] == name].set_index("row").drop(columns="metric")
        frame = self.places.join(of_metric, how="inner")
        order = frame["difference"].abs().sort_values(ascending=False, kind="stable").index
        return frame.loc[order]

    def compared(self, name: str) -> int:
        """How many rows were compared by a metric; 0 if it is unknown."""
        return self._of_family(name, "compared")

    def verdicts(self, name: str) -> int:
        """How many rows have a verdict by a metric; 0 if it is unknown."""
        return self._of_family(name, "verdicts")

    def _of_family(self, name: str, column: str) -> int:
        found = self.families.loc[self.families["metric"] == name, column]
        return int(found.iloc[0]) if len(found) else 0


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
    """Whether lines, functions, files, threads and calls are compared as shares (0..1) of each run's total."""
    spread: float | None
    """The spread between runs that the user stated, None where it was measured or is unknown."""
    summary: Summary
    unjudged: str | None
    """Why there are no verdicts, or none on times, None where there can be."""
    judged: Judged
    """What there can be verdicts on."""
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
        found = (
            self.totals,
            self.files,
            self.functions,
            self.native_functions,
            self.lines,
            self.threads,
            self.calls,
        )
        return {level.name: level for level in found}


class Outcome(enum.StrEnum):
    """How a condition came out."""

    FAILED = "failed"
    """The interval lies above what is allowed."""
    PASSED = "passed"
    """The interval lies within what is allowed."""
    UNDECIDED = "undecided"
    """The interval includes what is allowed: the runs do not tell, and nothing fails."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What fails: that a metric grew by more than ``amount`` (a share of the base if ``relative``)."""

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
