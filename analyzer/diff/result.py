"""The result of a diff: tidy frames that renderers show."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from ..profile.profile import Question
from .evidence import Amounts, Evidence
from .metrics import BY_NAME, Metric
from .run import Run

SLOWER, FASTER, MORE, LESS = "slower", "faster", "more", "less"
NO_EVIDENCE, UNKNOWN = "no evidence", "unknown"
VERDICTS = (SLOWER, FASTER, MORE, LESS, NO_EVIDENCE, UNKNOWN)
"""``no evidence``: the interval includes 0. ``unknown``: one side's amount is not known, or nobody can tell which row
of the other side this is."""


@dataclass(frozen=True)
class Level:
    """What was compared row by row: lines, functions, files, threads, nodes of the call tree, or the whole program.

    ``places`` has a row for each row that was compared. Columns: status (``Status``), and for

    - lines: file, line, function, source, and file, line, source with ``base_`` and ``new_`` in front;
    - functions: function, file, line (its first), and the same with ``base_`` and ``new_`` in front;
    - files: file, base_file, new_file; threads: name;
    - calls: parent (row of the caller, -1 at the root), function, file, line (first line of the function).

    Without a prefix they are as the new recording has them, or as the base has them for what vanished.

    ``values`` is long: row (of ``places``), metric, base, new (means of the runs), difference, low, high (of its
    interval), change (new / base - 1), change_low, change_high, p, verdict. NaN is unknown, an infinite change is one
    from nothing. Rows in which a metric is 0 on both sides are left out.

    ``families`` says for each metric how many rows were compared (those with too little in them to ever tell are not),
    the ``alpha`` at which each of them was judged so that at most 5 % of the verdicts are wrong, and how many verdicts
    there are. The intervals in ``values`` have the confidence 1 - alpha.
    """

    name: str
    places: pd.DataFrame
    values: pd.DataFrame
    families: pd.DataFrame
    spread: float
    amounts: dict[str, tuple[Amounts, Amounts]] = field(repr=False)

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that both sides know."""
        return [BY_NAME[name] for name in self.families["metric"].tolist()]

    def metric(self, name: str) -> pd.DataFrame:
        """Places with the values of one metric, the largest difference first; the index is the row."""
        chosen = self.values[self.values["metric"] == name].set_index("row").drop(columns="metric")
        frame = self.places.join(chosen, how="inner")
        order = frame["difference"].abs().sort_values(ascending=False, kind="stable").index
        return frame.loc[order]

    def compared(self, name: str) -> int:
        """How many rows were compared by a metric; 0 if it is unknown."""
        found = self.families.loc[self.families["metric"] == name, "compared"]
        return int(found.iloc[0]) if len(found) else 0

    def evidence(self, name: str, factor: float = 1.0) -> Evidence:
        """What the rows say about ``new - factor * base``; KeyError if a side does not know the metric."""
        base, new = self.amounts[name]
        return Evidence(base, new, max(self.spread, BY_NAME[name].spread), factor)


@dataclass(frozen=True)
class DiffResult:
    """Two sides compared. ``base`` and ``new`` hold the runs, each with its whole ``Profile``."""

    base: list[Run]
    new: list[Run]
    question: Question
    scope: str
    widened: bool
    shares: bool
    """Whether lines, functions, files, threads and calls are compared as shares (0..1) of each run's total."""
    spread: float | None
    """The spread between runs that was assumed, None where it was measured."""
    remarks: list[str]
    totals: Level
    lines: Level
    functions: Level
    files: Level
    threads: Level
    calls: Level
    """The merged call tree: every node that a run of either side has, with what is in it and below it."""

    @property
    def levels(self) -> dict[str, Level]:
        """All levels by name."""
        found = (self.totals, self.files, self.functions, self.lines, self.threads, self.calls)
        return {level.name: level for level in found}
