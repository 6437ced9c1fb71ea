"""Compares two recordings, or two groups of them, and sums the answer up in one word and one sentence.

Some runs cannot give an answer: on a busy machine, or where the machine's own speed differs between two sides that were
recorded one after the other. Runs of a side that follow one another closely share the state of the machine: neighbours
on the same processor, the clock rate. A change between the sides shows in none of them. Three runs took 3.7 s and the
next three 2.4 s, of one and the same program, on a machine that did nothing else: no statistics of the times alone can
tell that from a change of the program.

But each recording has a yardstick: the recorder itself, which does the same work for each sample. Where its time for a
sample varies from run to run by a tenth, the machine's speed does so as well, and each side may be off by as much. Only
the variation within a side counts: that samples of the new program cost more may be the program's doing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from tachograph.format import FormatError

from ..profile.question import Question
from ..recording.opened import Watcher
from ..recording.output_file import uncollected
from ..recording.text import printable
from ..report_data.difference import (
    BY_NAME,
    FASTER,
    LESS,
    MORE,
    NATIVE,
    NOT_JUDGED,
    OF_CALLS,
    OVERALL,
    SELF,
    SLOWER,
    TOTAL,
    TREE,
    DiffResult,
    Judged,
    Level,
    Metric,
    Summary,
)
from ..report_data.headline import CPU_WAIT_SHARE
from ..report_data.numbers import amount, change, changes, counted, percent, signed
from ..statistics.distributions import adjusted_alpha
from .evidence import RATE
from .levels import DISTURBANCE, Judging, Rows, level_of, measured, test, totals
from .links import Link
from .places import MergedTree, Placer, native_places
from .places import Rows as Places
from .runs import Run, Side, data_missing, in_one_scope, make_side, obstacles, once, read_run, remarks, strangers


def in_turns(base: Sequence[Run], new: Sequence[Run]) -> bool:
    """True if the sides were recorded in turns, or in random order, and not one after the other."""
    when = [(run.profile.metadata.created_utc or "", side) for side, runs in enumerate((base, new)) for run in runs]
    order = [side for _, side in sorted(when)]
    changes = sum(one != other for one, other in pairwise(order))
    return changes + 1 >= min(len(base), len(new)) and all(time for time, _ in when)


def drift(base: Sequence[Run], new: Sequence[Run]) -> float:
    """The standard deviation of the machine's speed, as a share, that each side may be off by as a whole.

    0 where what the machine did is in the spread of the runs (sides in turns), where there is one run a side, and where
    the recordings do not tell what a sample cost.
    """
    if len(base) == len(new) == 1 or (min(len(base), len(new)) > 1 and in_turns(base, new)):
        return 0.0
    squares, freedom = 0.0, 0
    for side in (base, new):
        logs = [math.log(run.sample_ns) for run in side if run.sample_ns]
        if len(logs) > 1:
            mean = sum(logs) / len(logs)
            squares += sum((each - mean) ** 2 for each in logs)
            freedom += len(logs) - 1
    return math.sqrt(squares / freedom) if freedom else 0.0


TIMES = ("cpu", "main_wait", "wall")
SIZES = ("memory.peak", "memory.live_at_end", "memory.allocated")
"""Totals that decide the answer, the most important first."""

_WORSE, _BETTER = {SLOWER, MORE}, {FASTER, LESS}
_REPEAT = "repeat to know: tachograph diff --base A1 A2 A3 --new B1 B2 B3"
_REPEAT_BUSY = "repeat on a quiet machine, or five times a side in turns, to know"


MIN_ON_BUSY = 5
"""Fewest runs a side that give a verdict on a busy machine, if the sides were recorded in turns."""


LEAST_STATED = 0.05
"""Change of a time that the answer begins with although it has no verdict, as a part of the wall time."""

LEAST_PART = 0.25
"""Part of it that a line has to have to be named."""

COUNTER_SPREAD = 0.002
"""With one run a side, the standard deviation between runs of what is allocated, as a share.

Measured: 0.0008 % for a program that does the same each time; hash seeds make it 0.1 %. What sampling adds to the bytes
of a line or function is in its own interval."""


def unjudged(
    base: Sequence[Run], new: Sequence[Run], spread: float | None, *, anyway: bool
) -> tuple[Judged, str | None]:
    """The metrics that the runs can judge, and why not all of them.

    ``spread`` is the standard deviation between runs that the user states, as a share; ``anyway`` judges runs of a busy
    machine as well. A busy machine changes the CPU time of one and the same program by tens of per cent within minutes
    (docs/explanation/diff.md has figures): three runs, and then three others, see little of that in each of the two
    groups. It does not change what is allocated.
    """
    single = len(base) == 1 and len(new) == 1
    busy = [sum(map(_busy, side)) / len(side) for side in (base, new)]
    steady = min(len(base), len(new)) >= MIN_ON_BUSY and in_turns(base, new)
    counted_alone = Judged.COUNTERS if all(map(_is_counted, (*base, *new))) else Judged.NOTHING
    if max(busy) > CPU_WAIT_SHARE and not steady and not anyway:
        share = f"no processor for {percent(max(busy))} % of the time"
        if single:
            return counted_alone, f"one run a side, on a busy machine ({share})"
        return Judged.BYTES, f"the machine was busy ({share})"
    if single and spread is None:
        return counted_alone, "one run a side"
    return Judged.EVERYTHING, None


def _is_counted(run: Run) -> bool:
    """True if a run's allocated bytes were counted to its end, and not estimated for a part of it."""
    question = run.profile.question
    part = (question.thread, question.span, question.processes, question.start_s, question.end_s)
    return not any(part) and run.end is None and not data_missing(run)


def _busy(run: Run) -> float:
    """The part of its time that a run had no processor for."""
    totals = run.profile.totals
    return (totals.main_cpu_wait_s or 0.0) / totals.main_s if totals.main_s > 0 else 0.0


def summarise(totals: Level, lines: Level, judged: Judged, reason: str | None) -> Summary:
    """The answer; ``judged`` and ``reason`` are those of ``unjudged``."""
    rows = totals.values.set_index("metric")
    measured = [name for name in (*TIMES, *SIZES) if name in rows.index]
    if reason is None:
        return _judged(totals, lines, rows, measured)
    # On a busy machine a time may have changed by more than that can do.
    open_ = [name for name in measured if not judged.includes(BY_NAME[name]) and not _has_verdict(rows.loc[name])]
    by_change = sorted(open_, key=lambda name: -_size_of_change(rows.loc[name]))
    changes = [f"{BY_NAME[name].label} {_change(rows.loc[name])}" for name in by_change if _noted(rows.loc[name])]
    again = _REPEAT_BUSY if "busy" in reason else _REPEAT
    decided = [name for name in measured if name not in open_]
    answer = _judged(totals, lines, rows, decided) if decided else None
    leading = _beyond(rows, open_)
    if leading is not None:
        parts = [_stated(lines, rows, leading, measured), f"{reason}: by how much is rough"]
        if answer is not None and answer.verdict != "same":
            parts.append(answer.sentence)
        return Summary(NOT_JUDGED, "; ".join(parts))
    verb = ", and the sides differ" if judged is Judged.BYTES else ", differs" if "busy" in reason else " differs"
    rest = f"{reason}{verb} by {', '.join(changes[:2]) or 'less than 1 %'}; {again}"
    if answer is None:
        return Summary(NOT_JUDGED, f"not judged: {rest}")
    if answer.verdict == "same":
        return Summary(NOT_JUDGED, f"not judged: {rest}; no difference found in memory")
    return Summary(answer.verdict, f"{answer.sentence}; not judged: {rest}")


def _beyond(rows: pd.DataFrame, open_: Sequence[str]) -> str | None:
    """The time without a verdict that changed most, if by more than a busy machine can do; None if none did.

    That is no verdict: runs differ for other reasons as well (other input, a cold cache).
    """
    wall = max((rows.at["wall", side] for side in ("base", "new")), default=0.0) if "wall" in rows.index else 0.0
    far = [
        name
        for name in TIMES
        if name in open_
        and (rows.at[name, "change_low"] > DISTURBANCE - 1 or rows.at[name, "change_high"] < 1 / DISTURBANCE - 1)
        and abs(rows.at[name, "difference"]) >= LEAST_STATED * wall
    ]
    # The time without a processor is in the wall time: it is for what neither computing nor waiting says.
    far.sort(key=lambda name: (name == "wall", -abs(rows.at[name, "difference"])))
    return far[0] if far else None


def _stated(lines: Level, rows: pd.DataFrame, name: str, measured: Sequence[str]) -> str:
    """A change with both amounts, and the line that most of it is of."""
    row, metric = rows.loc[name], BY_NAME[name]
    change = signed(row["difference"], metric.unit) if not row["base"] > 0 else _change(row)
    text = f"{metric.label} {amount(row['base'], metric.unit)} -> {amount(row['new'], metric.unit)} ({change})"
    text += _part_of_line(lines, name, row["difference"])
    against = _opposing(rows, measured, [name])
    if against is not None:
        text += f", but {BY_NAME[against].label} {signed(rows.at[against, 'difference'], 's')}"
    return text


def _part_of_line(lines: Level, metric: str, difference: float) -> str:
    """The line whose difference is a large part of a total's, in words."""
    name = "cpu" if metric == "wall" else metric
    if not lines.knows(name):
        return ""
    frame = lines.metric(name)
    frame = frame[frame["file"].notna() & (frame["difference"] * difference > 0)]
    part = frame.iloc[0]["difference"] / difference if len(frame) else 0.0
    if part < LEAST_PART:
        return ""
    how_much = "almost all of it" if part >= 0.8 else "most of it" if part >= 0.5 else f"{percent(part)} % of it"
    return f", {how_much} {_place(frame.iloc[0])}"


def _place(line: pd.Series) -> str:
    return f"{str(line['file']).rpartition('/')[2]}:{line['line']}"


def _has_verdict(row: pd.Series) -> bool:
    return row["verdict"] in _WORSE | _BETTER


def _size_of_change(row: pd.Series) -> float:
    """The size of a relative change, up or down alike; what was nothing before is last."""
    if not (row["base"] > 0 and row["new"] > 0):
        return 0.0
    return abs(math.log(row["new"] / row["base"]))


def _judged(totals: Level, lines: Level, rows: pd.DataFrame, measured: Sequence[str]) -> Summary:
    """The answer by the totals that are ``measured`` and can be judged; ``rows`` are those of ``totals`` by metric."""
    times = [name for name in TIMES if name in measured and _has_verdict(rows.loc[name])]
    # What changed by most seconds is the answer.
    times.sort(key=lambda name: -abs(rows.at[name, "difference"]))
    sizes = [name for name in SIZES if name in measured and _has_verdict(rows.loc[name])]
    if not times and not sizes:
        return _by_lines(lines, rows, measured)
    changed = [*times, *sizes]
    verdicts = {str(rows.at[name, "verdict"]) for name in changed}
    against = _opposing(rows, measured, times)
    if (verdicts & _WORSE and verdicts & _BETTER) or against is not None:
        parts = [f"{BY_NAME[name].label} {_change(rows.loc[name])}" for name in changed[:3]]
        if against is not None:
            parts.insert(1, f"{BY_NAME[against].label} {signed(rows.at[against, 'difference'], 's')}, most likely")
        return Summary("mixed", f"mixed: {', '.join(parts[:3])}")
    row = rows.loc[changed[0]]
    first = f"{row['verdict']}: {BY_NAME[changed[0]].label} {_change(row)}{_interval(row)}"
    others = [f"{BY_NAME[name].label} {_change(rows.loc[name])}" for name in sizes[:1] if times]
    return Summary(str(row["verdict"]), ", ".join([first + _because(lines, changed[0], str(row["verdict"])), *others]))


def _opposing(rows: pd.DataFrame, measured: Sequence[str], times: Sequence[str]) -> str | None:
    """The time that changed the other way by at least half as many seconds, certain or not; None if none did.

    A program that waits for half a second more than it computes less has not become faster.
    """
    if not times or "wall" in times:
        return None
    difference = rows.at[times[0], "difference"]
    for name in ("main_wait", "cpu"):
        if name in measured and name not in times:
            other = rows.at[name, "difference"]
            if other * difference < 0 and abs(other) >= abs(difference) / 2:
                return name
    return None


def _by_lines(lines: Level, rows: pd.DataFrame, measured: Sequence[str]) -> Summary:
    """The summary by lines, where the totals have no verdict."""
    values = lines.values
    judged = values[values["metric"].isin((*TIMES, *SIZES)) & values["verdict"].isin(_WORSE | _BETTER)]
    if judged.empty:
        row = rows.loc[measured[0]] if measured else None
        change = "" if row is None else f": {BY_NAME[measured[0]].label} {_change(row)}{_interval(row)}"
        return Summary("same", f"no difference found{change}")
    verdicts = set(judged["verdict"].astype(str))
    word = verdicts.pop() if len(verdicts) == 1 else "mixed"
    count = judged["row"].nunique()
    return Summary(word, f"{word}: {counted(count, 'lines')} changed, and the totals show no difference")


def _noted(row: pd.Series) -> bool:
    """True if a total differs by more than rounding: for runs that cannot be judged."""
    return bool(np.isfinite(row["difference"]) and (not row["base"] > 0 or abs(row["change"]) >= 0.01))


def _change(row: pd.Series) -> str:
    unit = BY_NAME[str(row.name)].unit
    return change(row["change"]) or signed(row["difference"], unit)


def _interval(row: pd.Series) -> str:
    interval = changes(row["change_low"], row["change_high"]) if row["base"] > 0 else ""
    return f" ({interval})" if interval else ""


def _because(lines: Level, metric: str, verdict: str) -> str:
    """The line that changed most in the same direction, if its change is most of the whole."""
    name = "cpu" if metric == "wall" else metric
    if not lines.knows(name):
        return ""
    frame = lines.metric(name)
    frame = frame[(frame["verdict"] == verdict) & frame["file"].notna()]
    if frame.empty:
        return ""
    return f", because of {_place(frame.iloc[0])}"


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
