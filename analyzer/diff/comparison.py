"""Compares two recordings, or two groups: totals, lines, functions, files, threads and calls, each with a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tachograph.format import FormatError

from ..profile.question import Question
from ..recording.opened import Watcher
from ..recording.output_file import uncollected
from ..recording.text import printable
from ..report_data.difference import (
    NATIVE,
    OF_CALLS,
    OVERALL,
    SELF,
    TOTAL,
    TREE,
    DiffResult,
    Judged,
    Level,
    Metric,
)
from ..report_data.numbers import counted, percent
from ..statistics.distributions import adjusted_alpha
from .answer import summarise
from .evidence import RATE
from .judging_conditions import drift, unjudged
from .levels import Judging, Rows, level_of, measured, test, totals
from .links import Link
from .places import MergedTree, Placer, native_places
from .places import Rows as Places
from .runs import Run, Side, in_one_scope, make_side, obstacles, once, read_run, remarks, strangers

COUNTER_SPREAD = 0.002
"""With one run a side, the standard deviation between runs of what is allocated, as a share.

Measured: 0.0008 % for a program that does the same each time; hash seeds make it 0.1 %. What sampling adds to the bytes
of a line or function is in its own interval."""

LEAST_DRIFT = 0.02
"""A smaller one is not worth a remark: it hardly changes an interval."""

SPEED = (
    "the sides were recorded one after the other, and the machine's own speed varied by some {} % from run to run:"
    " times that differ little more than that may be the machine's; record in turns (old, new, old, new) to know more"
)

STORED = (
    "lines and functions are compared by their shares, of which the machine's speed is no part: the sides were recorded"
    " one after the other (--anyway compares their times)"
)

SMALLEST = 0.01
"""The smallest difference that matters, as a share of the total (or five times as much of the value itself)."""

COLUMNS = {
    "files": ("file", "base_file", "new_file"),
    "functions": ("function", "file", "line"),
    "native_functions": ("function", "module", "library", "file", "line"),
    "lines": ("file", "line", "function", "source"),
    "threads": ("name",),
}
_BOTH = {
    "functions": ("function", "file", "line"),
    "native_functions": ("library", "file", "line"),
    "lines": ("file", "line", "source"),
}


def diff(
    base: Sequence[Path],
    new: Sequence[Path],
    question: Question | None = None,
    *,
    anyway: bool = False,
    shares: bool | None = None,
    spread: float | None = None,
    smallest: float = SMALLEST,
    watcher: Watcher | None = None,
) -> DiffResult:
    """Compares the recordings ``new`` with the recordings ``base``.

    ``anyway`` compares even if programs, settings or machine load differ; ``shares`` compares shares
    of each run's total instead of amounts (None: of stored bases, see ``STORED``); ``spread`` is the standard deviation
    between runs (as a share), if there is one run a side and it is known: without it, one run a side gives no verdicts
    on times; ``smallest`` is the smallest difference that matters, as a share of the total; ``watcher`` is told how far
    it has come.

    Errors:
        FormatError: a side is empty, a recording cannot be read, or they cannot be compared.
    """
    if not base or not new:
        raise FormatError("a diff needs at least one recording on each side")
    resolved = question or Question()
    with uncollected():
        runs: list[Run] = []
        for path in (*base, *new):
            if watcher is not None:
                watcher.step(f"opening {printable(path.name, 40)}")
            runs.append(read_run(path, resolved, watcher))
        sides = once(runs[: len(base)]), once(runs[len(base) :])
        repeated = len(runs) - sum(map(len, sides))
        note = [f"{counted(repeated, 'recordings')} given more than once: each counts once"] if repeated else []
        return diff_runs(
            *sides,
            resolved,
            anyway=anyway,
            shares=shares,
            spread=spread,
            smallest=smallest,
            watcher=watcher,
            notes=note,
        )


def diff_runs(
    base: Sequence[Run],
    new: Sequence[Run],
    question: Question,
    *,
    anyway: bool = False,
    shares: bool | None = None,
    spread: float | None = None,
    smallest: float = SMALLEST,
    watcher: Watcher | None = None,
    notes: Sequence[str] = (),
) -> DiffResult:
    """``diff`` of recordings that were read before, all with this ``question``; ``notes`` come before the remarks.

    Errors:
        FormatError: they cannot be compared.
    """
    runs = [*base, *new]
    reasons = obstacles(runs)
    if reasons and not anyway:
        raise _refusal(reasons)
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
    if strange := strangers(*sides, link):
        reasons.append(strange)
        if not anyway:
            raise _refusal(reasons)
    remarked = [f"not comparable: {reason}" for reason in reasons] + remarks(sides[0].runs, sides[1].runs)
    if shares is None and not anyway and spread is None and drift(*(side.runs for side in sides)) >= LEAST_DRIFT:
        shares = True
        remarked.append(STORED)
    how = _How(bool(shares), spread, smallest, anyway)
    return _Comparison(sides, link, how).result(question, [*notes, *remarked, *_about_link(link)])


def _refusal(reasons: Sequence[str]) -> FormatError:
    return FormatError(f"these recordings cannot be compared: {'; '.join(reasons)} (--anyway compares them)")


@dataclass(frozen=True, slots=True)
class _How:
    """Settings of a comparison: what counts as different."""

    shares: bool
    spread: float | None
    smallest: float
    anyway: bool


class _Comparison:
    """Two linked sides."""

    def __init__(self, sides: tuple[Side, Side], link: Link, how: _How) -> None:
        self._sides, self._link = sides, link
        self._shares, self._spread = how.shares, how.spread
        self._runs = sides[0].runs, sides[1].runs
        self._placer = Placer(*sides, link)
        self._judged_of, self._unjudged = unjudged(*self._runs, how.spread, anyway=how.anyway)
        amounts = totals(OVERALL, self._runs)
        wholes = {name: float(max(side.mean[0] for side in both)) for name, both in amounts.items()}
        # Of shares of a run's own total the machine's speed is no part.
        speed = drift(*self._runs)
        between = COUNTER_SPREAD if self._judged_of is Judged.COUNTERS else how.spread or 0.0
        self._totals_judging = Judging(self._judged_of, between, how.smallest, wholes, speed)
        of_rows = {} if how.shares else wholes
        self._judging = Judging(self._judged_of, between, how.smallest, of_rows, 0.0 if how.shares else speed)

    def result(self, question: Question, notes: list[str]) -> DiffResult:
        """Everything, compared."""
        runs = [*self._runs[0], *self._runs[1]]
        placer = self._placer
        # The totals are questions of their own. All rows and metrics of all tables are asked together: if nothing
        # changed, none of them has a verdict in almost all diffs.
        (whole,) = self._judged([self._totals()], self._totals_judging)
        lines, functions, native, files, threads, calls = self._judged(
            [
                self._rows("lines", placer.lines(), (*SELF, *TOTAL)),
                self._rows("functions", placer.functions(), (*SELF, *TOTAL, *(() if self._shares else OF_CALLS))),
                self._rows("native_functions", native_places(*self._sides), NATIVE),
                self._rows("files", placer.files(), (*SELF, *TOTAL)),
                self._rows("threads", placer.threads(), SELF),
                self._calls(),
            ],
            self._judging,
        )
        if self._totals_judging.drift >= LEAST_DRIFT:
            notes = [*notes, SPEED.format(percent(self._totals_judging.drift))]
        return DiffResult(
            base=[*self._runs[0]],
            new=[*self._runs[1]],
            question=question,
            scope=runs[0].profile.scope,
            widened=any(run.profile.widened for run in runs),
            shares=self._shares,
            spread=self._spread if len(runs) == 2 else None,
            summary=summarise(whole, lines, self._judged_of, self._unjudged),
            unjudged=self._unjudged,
            judged=self._judged_of,
            remarks=notes,
            totals=whole,
            lines=lines,
            functions=functions,
            native_functions=native,
            files=files,
            threads=threads,
            calls=calls,
        )

    def _judged(self, tables: Sequence[Rows], judging: Judging) -> list[Level]:
        """The tables with their verdicts, of which at most a small share is wrong in all of them together."""
        p_values = [tested.p for table in tables for tested in table.tested]
        alpha = adjusted_alpha(np.concatenate(p_values)) if p_values and judging.judged is not Judged.NOTHING else RATE
        return [level_of(table, alpha, judging) for table in tables]

    def _totals(self) -> Rows:
        amounts = totals(OVERALL, self._runs)
        places = pd.DataFrame({"status": ["same"]})
        return test("totals", places, np.zeros(1, np.bool_), amounts, OVERALL, self._totals_judging)

    def _rows(self, name: str, rows: Places, metrics: Sequence[Metric]) -> Rows:
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
        pseudo = np.array(rows.pseudo, np.bool_)
        return test(name, rows.frame(columns), pseudo, amounts, metrics, self._judging)

    def _calls(self) -> Rows:
        tree = MergedTree(*self._sides, self._link, self._placer)
        nodes = tree.of_base, tree.of_new
        frames = tuple(
            [tree.sums(run, of_run, TREE) for run, of_run in zip(runs, numbers, strict=True)]
            for runs, numbers in zip(self._runs, nodes, strict=True)
        )
        places = tree.places()
        rows = tuple([places.index.to_numpy()] * len(runs) for runs in self._runs)
        amounts = measured(
            TREE, self._runs, (frames[0], frames[1]), (rows[0], rows[1]), len(places), shares=self._shares
        )
        return test("calls", places, places["file"].isna().to_numpy(np.bool_), amounts, TREE, self._judging)


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
