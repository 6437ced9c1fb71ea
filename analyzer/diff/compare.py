"""Compares two recordings, or two groups of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tachograph.format import FormatError

from ..profile.profile import Question
from ..recording.opened import Watcher
from ..recording.text import printable
from ..report_data.difference import DiffResult, Level
from ..report_data.difference_metrics import OVERALL, SELF, TOTAL, TREE, Metric
from ..report_data.numbers import counted
from .levels import Judging, compare, measured, totals
from .links import Link
from .places import MergedTree, Placer, Rows
from .runs import Run, Side, in_one_scope, make_side, obstacles, read_run, remarks
from .summary import summarise, unjudged

SMALLEST = 0.01
"""The smallest difference that matters, as a share of the total (or five times as much of the value itself)."""

COLUMNS = {
    "files": ("file", "base_file", "new_file"),
    "functions": ("function", "file", "line"),
    "lines": ("file", "line", "function", "source"),
    "threads": ("name",),
}
_BOTH = {"functions": ("function", "file", "line"), "lines": ("file", "line", "source")}


def diff(
    base: Sequence[Path],
    new: Sequence[Path],
    question: Question | None = None,
    *,
    anyway: bool = False,
    shares: bool = False,
    spread: float | None = None,
    smallest: float = SMALLEST,
    watcher: Watcher | None = None,
) -> DiffResult:
    """Compares the recordings ``new`` with the recordings ``base``.

    ``anyway`` compares what cannot well be compared; ``shares`` compares shares of each run's total instead of amounts;
    ``spread`` is the standard deviation between runs (as a share), if there is one run a side and it is known: without
    it, one run a side gives no verdicts; ``smallest`` is the smallest difference that matters, as a share of the total;
    ``watcher`` is told how far it has come.

    Errors:
        FormatError: a side is empty, a recording cannot be read, or they cannot be compared.
    """
    if not base or not new:
        raise FormatError("a diff needs at least one recording on each side")
    with _uncollected():
        how = _How(shares, spread, smallest)
        return _diff(base, new, question or Question(), how, anyway=anyway, watcher=watcher)


def _diff(
    base: Sequence[Path],
    new: Sequence[Path],
    question: Question,
    how: _How,
    *,
    anyway: bool,
    watcher: Watcher | None,
) -> DiffResult:
    runs: list[Run] = []
    for path in (*base, *new):
        if watcher is not None:
            watcher.step(f"opening {printable(path.name, 40)}")
        runs.append(read_run(path, question, watcher))
    reasons = obstacles(runs)
    if reasons and not anyway:
        raise FormatError(f"these recordings cannot be compared: {'; '.join(reasons)} (--anyway compares them)")
    runs = in_one_scope(runs, question, watcher)
    if watcher is not None:
        watcher.step("comparing")
    sides = make_side(runs[: len(base)]), make_side(runs[len(base) :])
    differing = [path for side in sides for path in side.differing]
    if differing and not anyway:
        raise FormatError(
            f"the runs of a side must be runs of one program: {differing[0]} is not the same in all of them"
            " (--anyway compares them)"
        )
    link = Link(sides[0].files, sides[1].files, sides[0].functions, sides[1].functions)
    notes = [f"not comparable: {reason}" for reason in reasons] + remarks(sides[0].runs, sides[1].runs)
    return _Comparison(sides, link, how).result(question, [*notes, *_about_link(link)])


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pauses the garbage collector: a diff makes many small objects without cycles, and all of them stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class _How:
    """What is compared, and what counts as different."""

    shares: bool
    spread: float | None
    smallest: float


class _Comparison:
    """Two linked sides."""

    def __init__(self, sides: tuple[Side, Side], link: Link, how: _How) -> None:
        self._sides, self._link = sides, link
        self._shares, self._spread = how.shares, how.spread
        self._runs = sides[0].runs, sides[1].runs
        self._placer = Placer(*sides, link)
        self._unjudged = unjudged(*self._runs, how.spread)
        amounts = totals(OVERALL, self._runs)
        wholes = {name: float(max(side.mean[0] for side in both)) for name, both in amounts.items()}
        self._totals_judging = Judging(self._unjudged is None, how.spread, how.smallest, wholes)
        of_rows = {} if how.shares else wholes
        self._judging = Judging(self._unjudged is None, how.spread, how.smallest, of_rows)

    def result(self, question: Question, notes: list[str]) -> DiffResult:
        """Everything, compared."""
        runs = [*self._runs[0], *self._runs[1]]
        placer = self._placer
        single = len(runs) == 2
        whole, lines = self._totals(), self._level("lines", placer.lines(), (*SELF, *TOTAL))
        return DiffResult(
            base=[*self._runs[0]],
            new=[*self._runs[1]],
            question=question,
            scope=runs[0].profile.scope,
            widened=any(run.profile.widened for run in runs),
            shares=self._shares,
            spread=self._spread if single else None,
            summary=summarise(whole, lines, self._unjudged),
            remarks=notes,
            totals=whole,
            lines=lines,
            functions=self._level("functions", placer.functions(), (*SELF, *TOTAL)),
            files=self._level("files", placer.files(), (*SELF, *TOTAL)),
            threads=self._level("threads", placer.threads(), SELF),
            calls=self._calls(),
        )

    def _totals(self) -> Level:
        amounts = totals(OVERALL, self._runs)
        return compare("totals", pd.DataFrame({"status": ["same"]}), amounts, OVERALL, self._totals_judging)

    def _level(self, name: str, rows: Rows, metrics: Sequence[Metric]) -> Level:
        both = _BOTH.get(name, ())
        columns = ["status", *COLUMNS[name], *(f"{end}_{column}" for end in ("base", "new") for column in both)]
        frames = tuple([getattr(run.profile, name) for run in side] for side in self._runs)
        amounts = measured(
            metrics,
            self._runs,
            (frames[0], frames[1]),
            (rows.of_base, rows.of_new),
            rows.count,
            shares=self._shares,
        )
        return compare(name, rows.frame(columns), amounts, metrics, self._judging)

    def _calls(self) -> Level:
        tree = MergedTree(*self._sides, self._link, self._placer)
        nodes = tree.of_base, tree.of_new
        frames = tuple(
            [tree.sums(run, of_run, TREE) for run, of_run in zip(runs, found, strict=True)]
            for runs, found in zip(self._runs, nodes, strict=True)
        )
        places = tree.places()
        rows = tuple([places.index.to_numpy()] * len(runs) for runs in self._runs)
        amounts = measured(
            TREE, self._runs, (frames[0], frames[1]), (rows[0], rows[1]), len(places), shares=self._shares
        )
        return compare("calls", places, amounts, TREE, self._judging)


def _about_link(link: Link) -> list[str]:
    """Remarks on how sources were followed."""
    notes = []
    if blind := len(link.forward.blind):
        notes.append(f"{blind} changed files are without their text in a recording: their lines cannot be followed")
    if link.assumed:
        notes.append(f"{counted(link.assumed, 'files whose text is in no recording')}: lines are compared by number")
    if link.unparsed:
        notes.append(f"in {link.unparsed} changed files functions that moved were not looked for: too much text")
    return notes
