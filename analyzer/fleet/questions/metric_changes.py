"""``tachograph history``: when a metric of a program changed, over recordings in the order of time or version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError

from ...recording.text import printable
from ...statistics.change_points import change_points
from ...statistics.distributions import t_quantile
from .selection import Selection, natural_order
from .top import amounts_of, find_place

METRICS = {"cpu": "s", "wall": "s", "wait": "s", "allocated": "bytes", "peak": "bytes", "resident": "bytes"}
"""Metrics that can be followed, with their units."""

_COLUMNS = {
    "cpu": "cpu_s",
    "wall": "wall_s",
    "wait": "main_wait_s",
    "allocated": "allocated_bytes",
    "peak": "peak_bytes",
    "resident": "resident_peak_bytes",
}
_OF_FUNCTIONS = {"cpu": "cpu_s", "wait": "main_wait_s", "allocated": "allocated_bytes"}

TIME = "time"
MOST = 1_000
"""Recordings that are looked at: the newest ones."""

FEWEST = 4

if TYPE_CHECKING:
    from ...report_data.difference import DiffResult

_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Segment:
    """Recordings between two change points, in order: what ``by`` says of the first and the last, and their mean."""

    first: str
    last: str
    recordings: int
    mean: float


@dataclass(frozen=True)
class Point:
    """A change: since ``at`` (a value of ``by``), from ``before`` to ``after`` (means of the segments).

    ``change`` is relative, with the ends of a 95 % interval; infinite from nothing. ``p`` is that of the point.
    ``base`` and ``new`` are paths of recordings on both sides, those next to the point; ``difference`` is their diff,
    None where there is none, and ``why_not`` says why.
    """

    at: str
    before: float
    after: float
    change: float
    low: float
    high: float
    p: float
    base: Sequence[str]
    new: Sequence[str]
    difference: DiffResult | None = None
    why_not: str | None = None


@dataclass(frozen=True)
class History:
    """The change points of a metric, in order, and the segments between them. ``left_out`` older ones were not read."""

    points: Sequence[Point]
    segments: Sequence[Segment]
    recordings: int
    left_out: int


def history(
    selection: Selection,
    opened: Callable[[str], AbstractContextManager[Path]],
    *,
    metric: str = "cpu",
    function: str | None = None,
    by: str = TIME,
    runs: int = 5,
    diffs: int = 3,
    anyway: bool = False,
) -> History:
    """When a metric changed. ``by`` is ``time`` or a label, whose values are put in natural order.

    ``function`` follows its own amount in place of the whole's. The newest ``diffs`` points have the diff of ``runs``
    recordings on each side, which ``opened`` gives by their paths.

    Errors:
        FormatError: there is no such metric, label or function, or there are too few recordings.
    """
    selection.refuse_mixed(anyway=anyway)
    ordered, names, allowed = _ordered(selection, by)
    left_out = max(len(ordered) - MOST, 0)
    values = _values(ordered, metric, function)
    known = ~np.isnan(values)
    known[:left_out] = False
    if known.sum() < FEWEST:
        raise FormatError(f"a history needs {FEWEST} recordings that know the metric; there are {int(known.sum())}")
    paths = ordered.frame["path"].to_numpy(object)[known]
    values, names = values[known], [name for name, kept in zip(names, known.tolist(), strict=True) if kept]
    # Recordings of one version came together: between them there is no change.
    begins = np.array([number == 0 or names[number] != names[number - 1] for number in range(len(names))], np.bool_)
    # Times differ by factors; an amount of nothing has no logarithm.
    scale = np.log(values) if (values > 0).all() else values
    cuts = change_points(scale, begins if allowed else None)
    ends = [0, *(each.at for each in cuts), len(values)]
    parts = [slice(begin, end) for begin, end in pairwise(ends)]
    points = []
    for each, base, new in zip(cuts, parts[:-1], parts[1:], strict=True):
        change, low, high = _relative(values[base], values[new])
        means = float(values[base].mean()), float(values[new].mean())
        sides = list(paths[base][-runs:]), list(paths[new][:runs])
        points.append(Point(names[each.at], *means, change, low, high, each.p, *sides))
    first = max(len(points) - diffs, 0)
    points[first:] = [_with_diff(each, opened, anyway=anyway) for each in points[first:]]
    segments = [
        Segment(names[part.start], names[part.stop - 1], part.stop - part.start, float(values[part].mean()))
        for part in parts
    ]
    return History(points, segments, len(values), left_out)


def _ordered(selection: Selection, by: str) -> tuple[Selection, list[str], bool]:
    """The recordings in order, the value of ``by`` of each, and True if recordings of one value came together."""
    frame = selection.frame
    when = frame["created_utc"].fillna("").astype(str)
    if by == TIME:
        order = np.lexsort((frame["path"].to_numpy(str), when.to_numpy(str)))
        names = [text[:19].replace("T", " ") or "?" for text in when.iloc[order].tolist()]
        return Selection(frame.iloc[order].reset_index(drop=True), selection.index), names, False
    values = selection.values(by)
    there = [number for number, value in enumerate(values) if value is not None]
    if not there:
        labels = ", ".join(selection.label_names()[:12]) or "none"
        raise FormatError(f"no recording has the label {printable(by, 40)!r}; there are: {labels}")
    there.sort(key=lambda number: (natural_order(str(values[number])), when.iloc[number]))
    chosen = Selection(frame.iloc[there].reset_index(drop=True), selection.index)
    return chosen, [printable(str(values[number]), 60) for number in there], True


def _values(selection: Selection, metric: str, function: str | None) -> _Array:
    metrics = METRICS if function is None else _OF_FUNCTIONS
    if metric not in metrics:
        of = "" if function is None else " of a function"
        raise FormatError(f"there is no metric {printable(metric, 40)!r}{of}; there are: {', '.join(metrics)}")
    if function is not None:
        level, place = find_place(selection, function, _OF_FUNCTIONS[metric])
        return np.asarray(amounts_of(selection, level, _OF_FUNCTIONS[metric], place)[0], np.float64)
    frame = selection.frame
    values = frame[_COLUMNS[metric]]
    # By the clock where that is known: samples have an error of their own.
    clock = frame["clock_cpu_s"].fillna(values) if metric == "cpu" else values
    return np.asarray(clock.to_numpy(np.float64), np.float64)


def _relative(base: _Array, new: _Array) -> tuple[float, float, float]:
    """The relative change of the means, with Welch's 95 % interval of the logarithms."""
    before, after = float(base.mean()), float(new.mean())
    if before <= 0:
        return (0.0 if after == before else np.inf), -np.inf, np.inf
    change = after / before - 1
    if min(base.min(), new.min()) <= 0 or min(len(base), len(new)) < 2:
        return change, -np.inf, np.inf
    logs = np.log(base), np.log(new)
    parts = [float(each.var(ddof=1)) / len(each) for each in logs]
    error = sum(parts)
    if error == 0:
        return change, change, change
    freedom = error**2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, logs, strict=True))
    reach = float(t_quantile(0.05, np.array([freedom]))[0]) * float(np.sqrt(error))
    middle = float(logs[1].mean() - logs[0].mean())
    return change, float(np.expm1(middle - reach)), float(np.expm1(middle + reach))


def _with_diff(point: Point, opened: Callable[[str], AbstractContextManager[Path]], *, anyway: bool) -> Point:
    """The point with the diff of its sides."""
    from ...diff.comparison import diff  # all of the analyzer: questions alone do without

    try:
        with ExitStack() as stack:
            base, new = ([stack.enter_context(opened(path)) for path in side] for side in (point.base, point.new))
            return replace(point, difference=diff(base, new, anyway=anyway))
    except FormatError as error:
        return replace(point, why_not=str(error))
