"""The report of a diff: which rows are shown, and all of its words, the same for all renderers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..samples.summary import PROJECT
from .difference import (
    BY_NAME,
    CALL_TIME,
    CALLS,
    FASTER,
    LESS,
    MORE,
    OPEN,
    SLOWER,
    ComparedRun,
    DiffResult,
    Judged,
    Judgement,
    Level,
    Outcome,
    Status,
    verdict_text,
)
from .headline import scope_text
from .numbers import amount, change, changes, counted, seconds, signed, span, when

DIRECTIONS = (SLOWER, FASTER, MORE, LESS)
"""The verdicts that say that something changed."""

MIN_SHARE = 0.01
"""Rows without a verdict are shown if they differ by this part of the larger total."""

MIN_JUDGED = 0.001
"""Rows with a verdict are shown if they differ by this part of it."""

MAX_ROWS, MAX_OTHERS = 15, 6
"""Rows with a verdict, and others, that a table shows of the first metric."""

MAX_UNJUDGED = 4
"""Rows without a verdict where the runs do not tell: they are a hint."""

MAX_FURTHER = 6
"""Rows with a verdict that a table shows of any further metric; others are not shown."""

METRICS = ("cpu", "main_wait", "memory.live_at_peak", "memory.allocated", "memory.copied")
"""Metrics whose lines are shown: the first always, the others if there is a verdict."""

HIDDEN_TOTALS = ("cpu_wait", "gpu_wait", "wait")
"""Totals that are only shown if there is a verdict (all threads' waiting is mostly idleness)."""


def shown_metrics(result: DiffResult, metric: str | None) -> list[str]:
    """The metric that was asked for, or those that matter."""
    if metric is not None:
        return [metric]
    with_verdicts = [name for name in METRICS[1:] if result.lines.verdicts(name) or result.functions.verdicts(name)]
    return [METRICS[0], *with_verdicts]


def shown_rows(result: DiffResult, level: Level, name: str, metric: str | None, top: int | None) -> pd.DataFrame:
    """The rows of a level by the metric ``name``: those with a verdict, then those that differ most.

    ``metric`` is the one that was asked for; ``top`` rows are shown whatever their verdicts.
    """
    frame = level.metric(name)
    if top is not None:
        return frame.head(top)
    own = result.lines.metric(name.removeprefix("total_"))
    share = frame["difference"].abs() / max(own["base"].sum(), own["new"].sum(), 1e-300)
    judged = frame["verdict"].isin(DIRECTIONS) & (share >= MIN_JUDGED)
    if name.removeprefix("total_") != (metric or METRICS[0]):
        return frame[judged].head(MAX_FURTHER)
    large = share >= MIN_SHARE
    others = MAX_OTHERS if result.unjudged is None else MAX_UNJUDGED
    return pd.concat([frame[judged].head(MAX_ROWS), frame[~judged & large].head(others)])


def scope_fact(result: DiffResult) -> str | None:
    """The code that is compared, None where that is the project's, with its libraries."""
    if result.scope == PROJECT:
        return None
    text = scope_text(result.scope)
    return f"{text}: little of it is the project's" if result.widened else text


def side_facts(runs: Sequence[ComparedRun]) -> list[str]:
    """One side in a few words: of one recording when it was made and how long it ran, else how many there are."""
    if len(runs) > 1:
        return [f"{len(runs)} recordings", "means are shown"]
    first = runs[0].profile
    facts = (
        when(first.metadata.created_utc),
        f"{seconds(first.totals.wall_s)} wall",
        f"{first.totals.samples:,} samples",
    )
    return [fact for fact in facts if fact]


SAMPLING_ALONE = "intervals are of sampling alone: how much runs differ is not in them"
"""Why there are no verdicts on times."""


def spread_text(result: DiffResult) -> str:
    """The source of what is known of how much runs differ."""
    if result.spread is not None:
        return f"one recording a side, and runs are said to differ by {result.spread * 100:g} %"
    if result.judged in (Judged.NOTHING, Judged.COUNTERS) or len(result.base) == len(result.new) == 1:
        return SAMPLING_ALONE
    return "judged by how much the runs of a side differ"


@dataclass(frozen=True, slots=True)
class TotalRow:
    """A metric of the program as a whole, as texts; the last two are empty where the base had nothing."""

    label: str
    base: str
    new: str
    difference: str
    interval: str
    verdict: str
    change: str
    change_interval: str


def total_rows(result: DiffResult) -> Iterator[TotalRow]:
    """The totals that are shown.

    A single run a side says nothing of how far a total may be off that was measured and not sampled: no interval.
    """
    for row in result.totals.values.itertuples(index=False):
        if row.metric in HIDDEN_TOTALS and row.verdict in OPEN:
            continue
        metric = BY_NAME[row.metric]
        some = row.base > 0
        known = row.low < row.high or row.difference == 0
        if row.metric == "memory.live_at_peak" and row.verdict in OPEN and _is_peak(result, row.base, row.new):
            continue
        yield TotalRow(
            metric.label,
            amount(row.base, metric.unit),
            amount(row.new, metric.unit),
            signed(row.difference, metric.unit),
            span(row.low, row.high, metric.unit) if known else "",
            verdict_text(row.verdict),
            change(row.change) if some else "",
            changes(row.change_low, row.change_high) if some and known else "",
        )


def _is_peak(result: DiffResult, base: float, new: float) -> bool:
    """True if the peak memory has these amounts: they are shown there."""
    rows = result.totals.values
    peak = rows[rows["metric"] == "memory.peak"]
    return bool(((peak["base"] == base) & (peak["new"] == new)).any())


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A line or a function with its difference by one metric: amounts as texts, the place as the new side has it."""

    base: str
    new: str
    difference: str
    interval: str
    verdict: str
    status: Status
    function: str
    file: str | None
    line: int | None
    source: str | None
    library: str | None
    module: str | None
    """The library of a native function, in short."""
    base_function: str | None
    base_file: str | None
    base_line: int | None


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """Lines, functions or native functions by one metric."""

    level: str
    title: str
    subtitle: str
    rows: Sequence[ChangedRow]
    more: str
    """The option that shows the verdicts that are left out; empty if none is."""


def missing_text(result: DiffResult, metric: str) -> str | None:
    """The sentence in place of a metric's tables; None if both sides know it."""
    return None if result.lines.knows(metric) else f"{BY_NAME[metric].label} was not recorded on both sides"


def changed_tables(result: DiffResult, metric: str, asked: str | None, top: int | None) -> Iterator[ChangedTable]:
    """The tables by one metric: lines, then functions and native functions that have any rows.

    ``asked`` is the metric that was asked for; ``top`` rows are shown whatever their verdicts. Native functions are
    without what they call where a side does not know their callers.
    """
    label, total = BY_NAME[metric].label, f"total_{metric}"
    native = result.native_functions
    of_native = total if native.knows(total) else metric
    called = ", with what they call" if of_native == total else " itself"
    for level, name, title in (
        (result.lines, metric, f"Lines by {label}"),
        (result.functions, total, f"Functions by {label}, with what they call"),
        (native, of_native, f"Native functions by {label}{called}"),
    ):
        if not level.knows(name):
            continue
        frame = shown_rows(result, level, name, asked, top)
        # Functions of a further metric are for what no line tells.
        by_line = level is not result.lines and metric != (asked or METRICS[0]) and result.lines.verdicts(metric) > 0
        if (not frame.empty and not by_line) or level is result.lines:
            rows = list(_changed_rows(frame, "share" if result.shares else BY_NAME[name].unit))
            more = _left_out(level, name, frame, asked)
            yield ChangedTable(level.name, title, _compared(result, level, name), rows, more)


def _compared(result: DiffResult, level: Level, metric: str) -> str:
    of = " as shares of their runs" if result.shares else ""
    if not level.compared(metric) and result.unjudged is not None:
        single = len(result.base) == len(result.new) == 1
        return f"no verdicts{of}: {'one run a side is too few' if single else 'the machine was busy'}"
    return f"{level.compared(metric)} compared{of}, {counted(level.verdicts(metric), 'verdicts')}"


def _left_out(level: Level, metric: str, shown: pd.DataFrame, asked: str | None) -> str:
    left = level.verdicts(metric) - int(shown["verdict"].isin(DIRECTIONS).sum())
    if left <= 0:
        return ""
    name = metric.removeprefix("total_")
    how = "--top N shows more" if name == (asked or METRICS[0]) else f"--metric {name} shows more"
    return f"and {counted(left, 'verdicts on smaller differences')}: {how}"


def _changed_rows(frame: pd.DataFrame, unit: str) -> Iterator[ChangedRow]:
    for _, row in frame.iterrows():
        yield ChangedRow(
            amount(row["base"], unit),
            amount(row["new"], unit),
            signed(row["difference"], unit),
            span(row["low"], row["high"], unit),
            verdict_text(row["verdict"]),
            row["status"],
            str(row["function"]),
            _text(row.get("file")),
            _number(row.get("line")),
            _text(row.get("source")),
            _text(row.get("library")),
            _text(row.get("module")),
            _text(row.get("base_function")),
            _text(row.get("base_file")),
            _number(row.get("base_line")),
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | None:
    return None if value is None or value is pd.NA or value != value else int(value)


LEAST_OF_WALL = 0.01
"""Functions without a verdict are shown if the time in their calls differs by this part of the program's."""


@dataclass(frozen=True, slots=True)
class CallChange:
    """A function whose calls both sides know; changes are relative."""

    function: str
    file: str | None
    line: int | None
    calls: float
    calls_change: float
    mean_s: float
    mean_change: float
    mean_interval: str
    spent_s: float
    """The difference of the time in all of its calls."""
    verdict: str | None


def call_changes(result: DiffResult) -> list[CallChange]:
    """Functions whose calls both sides know, the largest difference of the time in all of their calls first."""
    level = result.functions
    if not (level.knows(CALLS.name) and level.knows(CALL_TIME.name)):
        return []
    parts = []
    for metric, prefix in ((CALLS, "calls_"), (CALL_TIME, "mean_")):
        values = level.values[level.values["metric"] == metric.name].set_index("row").drop(columns="metric")
        parts.append(values.add_prefix(prefix))
    frame = level.places.join(parts, how="inner")
    ends = [(frame[f"calls_{end}"] * frame[f"mean_{end}"]).fillna(0.0) for end in ("base", "new")]
    frame["spent"] = ends[1] - ends[0]
    order = np.argsort(-frame["spent"].abs().to_numpy(), kind="stable")
    return [
        CallChange(
            str(row["function"]),
            _text(row["file"]),
            _number(row["line"]),
            row["calls_new"],
            row["calls_change"],
            row["mean_new"],
            row["mean_change"],
            changes(row["mean_change_low"], row["mean_change_high"]),
            row["spent"],
            calls_verdict_text(row["calls_verdict"], row["mean_verdict"]),
        )
        for _, row in frame.iloc[order].iterrows()
    ]


def shown_call_changes(result: DiffResult, every: Sequence[CallChange]) -> list[CallChange]:
    """Those with a verdict, or with a part of the program's time."""
    wall = max(run.profile.totals.wall_s or 0.0 for run in (*result.base, *result.new))
    return [each for each in every if each.verdict is not None or abs(each.spent_s) >= LEAST_OF_WALL * wall]


def calls_verdict_text(calls: str | None, per_call: str | None) -> str | None:
    """The verdicts about a function's calls in words: ``called more often``, ``slower per call``, or both."""
    often = {"more": "called more often", "less": "called less often"}.get(calls or "")
    slow = f"{per_call} per call" if per_call in ("slower", "faster") else None
    return ", ".join(part for part in (slow, often) if part) or None


def explained(judgement: Judgement) -> str:
    """The change and the interval that a condition was judged by, in one line."""
    condition = judgement.condition
    if condition.relative:
        what = f"{change(judgement.value) or '?'}, 95 % interval {changes(judgement.low, judgement.high)}"
    else:
        unit = BY_NAME[condition.metric].unit
        what = f"{signed(judgement.value, unit)}, 95 % interval {span(judgement.low, judgement.high, unit)}"
    where = f"{judgement.where}: " if judgement.where else ""
    return f"{where}{what}" + ("; more runs would tell" if judgement.outcome is Outcome.UNDECIDED else "")


GONE, NEW, STAYS = "gone", "new", "stays"


@dataclass(frozen=True)
class RedundancyChange:
    """One finding on both sides, by file, function, kind and category: lines move when a program is edited.

    ``base_s`` and ``new_s`` are CPU seconds of a run, means over the runs of the side; 0 where it is not found.
    """

    file: str | None
    function: str | None
    kind: str
    category: str | None
    base_line: int | None
    new_line: int | None
    base_s: float
    new_s: float
    verdict: str
    """``gone``: in most runs of the base and in none of the new side; ``new``: the other way round; else ``stays``."""


def redundancy_changes(result: DiffResult) -> list[RedundancyChange] | None:
    """The findings of both sides, the largest first; None if a run did not look for repeated work."""
    if any(run.profile.frames.redundancies is None for run in (*result.base, *result.new)):
        return None
    base, new = _sums(result.base), _sums(result.new)
    work_changes = []
    for key in {**base, **new}:
        before, after = base.get(key, _Sum()), new.get(key, _Sum())
        if before.runs * 2 > len(result.base) and after.runs == 0:
            verdict = GONE
        elif after.runs * 2 > len(result.new) and before.runs == 0:
            verdict = NEW
        else:
            verdict = STAYS
        quantities = before.quantity_s / len(result.base), after.quantity_s / len(result.new)
        file, function, kind, category = key
        work_changes.append(
            RedundancyChange(file, function, kind, category, before.line, after.line, *quantities, verdict)
        )
    return sorted(work_changes, key=lambda each: -max(each.base_s, each.new_s))


@dataclass
class _Sum:
    quantity_s: float = 0.0
    runs: int = 0
    line: int | None = None


def _sums(runs: Sequence[ComparedRun]) -> dict[tuple[Any, ...], _Sum]:
    sums: dict[tuple[Any, ...], _Sum] = {}
    for run in runs:
        counted = set()
        assert run.profile.frames.redundancies is not None
        for row in run.profile.frames.redundancies.rows():
            key = tuple(row[name] for name in ("file", "function", "kind", "category"))
            each = sums.setdefault(key, _Sum())
            each.quantity_s += row["quantity_s"]
            each.line = row["line"] if each.line is None else each.line
            if key not in counted:
                each.runs += 1
                counted.add(key)
    return sums
