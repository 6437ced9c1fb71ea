"""Compares the rows of one level (lines, functions, files, ...), metric by metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..profile.profile import Profile
from ..recording.tables import release_unused
from ..report_data.difference import (
    BY_NAME,
    CALL_TIME,
    CALLS,
    NO_EVIDENCE,
    NOT_JUDGED,
    OF_CALLS,
    PEAK,
    RESIDENT,
    UNKNOWN,
    WALL,
    Judged,
    Level,
    Metric,
    Status,
)
from ..statistics.intervals import none_seen
from .evidence import RATE, Amounts, Evidence
from .runs import Run

MIN_COUNTS = 5.0
"""Rows with fewer independent observations in all runs together cannot show anything, and are not counted as compared.
The sum of both sides says nothing about their difference, so this does not favour any verdict."""

MIN_SHARE = 1e-3
"""Likewise for measures that are not sampled: a row is compared if it has this part of the total on either side."""

LEAST_SEEN = 2.0
"""Rows with fewer observations than this are never known better than those without any. The total may be known exactly,
and its estimated part has no variance where one row happens to have all of the few samples."""

LEAST_BYTES = {
    "memory.peak": 1 << 20,
    "memory.live_at_peak": 1 << 20,
    "memory.live_at_end": 1 << 20,
    "memory.resident_peak": 8 << 20,
}
"""Differences of the whole program that never matter. Allocators take memory in steps, CPython's 1 MiB at a time, and
what a moment holds has steps of its own (a table that doubles); resident pages of files depend on what else is in the
cache. Three runs may all be on one side of such a step, and three others on the other, as if they were certain."""

_Floats = NDArray[np.float64]
_Ids = NDArray[np.int64]

VALUES = ("base", "new", "difference", "low", "high", "change", "change_low", "change_high", "p")


@dataclass(frozen=True)
class Judging:
    """Settings for verdicts."""

    judged: Judged
    """The metrics that the runs can judge."""
    spread: float
    """The standard deviation between runs that the user states, as a share; 0 where it is measured, or not known."""
    smallest: float
    """The smallest difference that matters, as a share of the total."""
    wholes: dict[str, float]
    """By metric, the total of the program."""
    drift: float = 0.0
    """Share by which each side's times may be off as a whole (``compare``: the machine's own speed)."""

    def spread_of(self, metric: Metric) -> float:
        """The standard deviation between runs, as a share, beside what is measured."""
        return self.spread if self.judged is not Judged.COUNTERS or self.judged.includes(metric) else 0.0

    def drift_of(self, metric: Metric) -> float:
        """Share by which a metric may be off between the sides."""
        return self.drift if metric.unit == "s" else 0.0


@dataclass(frozen=True)
class Tested:
    """The p-values of one metric in the rows of a level; only ``used`` rows have anything of it."""

    metric: Metric
    evidence: Evidence
    base: Amounts
    new: Amounts
    used: NDArray[np.bool_]
    unfollowed: NDArray[np.bool_]
    able: NDArray[np.bool_]
    """Rows that have enough to be compared, and that could have a verdict if the runs can judge the metric."""
    p: _Floats
    """NaN: not compared."""


@dataclass(frozen=True)
class Rows:
    """A level before its verdicts."""

    name: str
    places: pd.DataFrame
    amounts: dict[str, tuple[Amounts, Amounts]]
    tested: list[Tested]


_IDLE_WAITS = ("wait", "cpu_wait", "gpu_wait")
"""Waiting of threads that may merely be idle: no verdict by thread, nor of all threads together."""


def test(
    name: str,
    places: pd.DataFrame,
    pseudo: NDArray[np.bool_],
    amounts: dict[str, tuple[Amounts, Amounts]],
    metrics: Sequence[Metric],
    judging: Judging,
) -> Rows:
    """Asks of each row and metric how likely its difference is by chance.

    ``pseudo`` are rows that are not code of the program, such as ``<before recording>``: they are shown, not judged.
    """
    unfollowed = (places["status"] == Status.NOT_FOLLOWED).to_numpy(np.bool_)
    tested = []
    for metric in metrics:
        if metric.name not in amounts:
            continue
        base, new = amounts[metric.name]
        used = ~((base.mean == 0) & (new.mean == 0)) & ~(np.isnan(base.mean) & np.isnan(new.mean))
        base, new = base.rows(used), new.rows(used)
        evidence = Evidence(base, new, judging.spread_of(metric), drift=judging.drift_of(metric))
        idle = name in ("threads", "totals") and metric.name in _IDLE_WAITS
        fit = metric.judged and not idle
        enough = ~np.isnan(base.mean + new.mean) if metric in OF_CALLS else _enough(base, new)
        able = enough & ~unfollowed[used] & ~pseudo[used] & fit
        p = evidence.p_values(able & judging.judged.includes(metric))
        tested.append(Tested(metric, evidence, base, new, used, unfollowed[used], able, p))
    return Rows(name, places, amounts, tested)


def level_of(rows: Rows, alpha: float, judging: Judging) -> Level:
    """The level with its verdicts: rows with ``p <= alpha`` whose difference matters."""
    parts, families = [], []
    for tested in rows.tested:
        least = LEAST_BYTES.get(tested.metric.name, 0) if rows.name == "totals" else 0
        judged = judging.judged.includes(tested.metric)
        values, family = _values(tested, alpha if judged or judging.judged is Judged.BYTES else RATE, judging, least)
        parts.append(values)
        families.append({"metric": tested.metric.name, **family})
    release_unused()
    # One table of all: to make one for each metric takes longer than to judge them.
    columns = {name: [part[name] for part in parts] for name in ("row", "metric", *VALUES, "verdict")}
    return Level(
        rows.name,
        rows.places,
        pd.DataFrame({name: np.concatenate(each) if each else [] for name, each in columns.items()}),
        pd.DataFrame(families, columns=["metric", "compared", "alpha", "verdicts"]),
        partial(_evidence, rows.amounts, judging),
    )


def _evidence(amounts: dict[str, tuple[Amounts, Amounts]], judging: Judging, metric: str, factor: float) -> Evidence:
    spread, drift = judging.spread_of(BY_NAME[metric]), judging.drift_of(BY_NAME[metric])
    return Evidence(*amounts[metric], spread, factor, drift)


def _matters(base: Amounts, new: Amounts, whole: float, smallest: float) -> NDArray[np.bool_]:
    """True for differences large enough to matter: ``smallest`` of the whole, or five times that of the value.

    The latter only with a tenth of the former: that a line of no weight doubles does not matter.
    """
    difference, value = np.abs(new.mean - base.mean), np.fmax(base.mean, new.mean)
    of_value = (difference >= 5 * smallest * value) & (difference >= smallest / 10 * whole)
    return np.asarray((difference >= smallest * whole) | of_value, np.bool_)


def _matters_of_calls(base: Amounts, new: Amounts, smallest: float) -> NDArray[np.bool_]:
    """Numbers of calls, and times per call, are judged by themselves: they are no part of a whole."""
    return np.asarray(np.abs(new.mean - base.mean) >= 5 * smallest * np.fmax(base.mean, new.mean), np.bool_)


def _values(
    tested: Tested, alpha: float, judging: Judging, least: int
) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
    metric, p = tested.metric, tested.p
    interval, change = tested.evidence.interval(alpha), tested.evidence.relative(alpha)
    whole = judging.wholes.get(metric.name.removeprefix("total_"))
    if whole is None:
        whole = float(max(np.nansum(tested.base.mean), np.nansum(tested.new.mean), 0.0))
    if metric in OF_CALLS:
        matters = _matters_of_calls(tested.base, tested.new, judging.smallest)
    else:
        matters = _matters(tested.base, tested.new, whole, judging.smallest)
    if judging.judged is Judged.BYTES and metric.sampled == "cpu":
        decided = _beyond_disturbance(tested, alpha)
    else:
        decided = p <= alpha
    certain = decided & matters & (np.abs(tested.evidence.difference) >= least)
    open_ = NO_EVIDENCE if judging.judged.includes(metric) or not metric.judged else NOT_JUDGED
    verdict = np.where(certain, np.where(interval.value > 0, metric.more, metric.less), open_)
    values = {
        "row": np.flatnonzero(tested.used),
        "metric": np.full(p.shape, metric.name, object),
        "base": tested.base.mean,
        "new": tested.new.mean,
        "difference": interval.value,
        "low": interval.low,
        "high": interval.high,
        "change": change.value,
        "change_low": change.low,
        "change_high": change.high,
        "p": p,
        "verdict": np.where(np.isnan(interval.value) | tested.unfollowed, UNKNOWN, verdict).astype(object),
    }
    return values, {"compared": int((~np.isnan(p)).sum()), "alpha": alpha, "verdicts": int(certain.sum())}


DISTURBANCE = 1.6
"""Factor by which a busy machine, or one of another speed, changes the CPU time of one and the same program at most.

A neighbour on the same core takes up to a third of its speed, and the clock rate changes by as much: three runs of a
program took 3.7 s, and the next three 2.4 s."""


def _beyond_disturbance(tested: Tested, alpha: float) -> NDArray[np.bool_]:
    """True for rows whose CPU time changed for certain by more than a busy machine can do."""
    rows = tested.able
    # Each row has its part of the error that is allowed (Bonferroni).
    change = tested.evidence.relative(min(alpha, RATE / max(int(rows.sum()), 1)))
    with np.errstate(invalid="ignore"):
        far = (change.low > DISTURBANCE - 1) | (change.high < 1 / DISTURBANCE - 1)
    return np.asarray(rows & far, np.bool_)


def _enough(base: Amounts, new: Amounts) -> NDArray[np.bool_]:
    """True for rows with enough samples to be compared."""
    enough = np.zeros(base.values.shape[1], np.bool_)
    sampled = bool((base.unit > 0).all() and (new.unit > 0).all()) and base.down is None and new.down is None
    if sampled:
        counts = sum((np.nan_to_num(side.values) / side.unit).sum(axis=0) for side in (base, new))
        return np.asarray(counts >= MIN_COUNTS, np.bool_)
    for side in (base, new):
        mean = np.nan_to_num(side.mean)
        enough |= (mean > 0) & (mean >= MIN_SHARE * mean.sum())
    return enough


def measured(
    metrics: Sequence[Metric],
    sides: tuple[Sequence[Run], Sequence[Run]],
    frames: tuple[Sequence[pd.DataFrame], Sequence[pd.DataFrame]],
    rows: tuple[Sequence[_Ids], Sequence[_Ids]],
    size: int,
    *,
    shares: bool,
) -> dict[str, tuple[Amounts, Amounts]]:
    """Amounts of ``size`` rows in the frames of all runs, by metric; metrics that a run does not know are left out."""
    amounts = {}
    for metric in metrics:
        both = [_side(metric, *side, size, shares=shares) for side in zip(sides, frames, rows, strict=True)]
        if both[0] is not None and both[1] is not None:
            amounts[metric.name] = (both[0], both[1])
    return amounts


def _side(
    metric: Metric,
    runs: Sequence[Run],
    frames: Sequence[pd.DataFrame],
    rows: Sequence[_Ids],
    size: int,
    *,
    shares: bool,
) -> Amounts | None:
    if not all(_known(metric, run, frame) for run, frame in zip(runs, frames, strict=True)):
        return None
    # A missing function was not called; how long its calls would have taken is unknown.
    values = np.full((len(runs), size), np.nan if metric is CALL_TIME else 0.0)
    unit = np.array([[sampling_unit(run.profile, metric.sampled, run.parameters)] for run in runs])
    low, high = f"{metric.column}_low", f"{metric.column}_high"
    has_arms = all(low in frame and high in frame and _is_known(frame, low) for frame in frames)
    arms = np.zeros((2, len(runs), size)) if has_arms else None
    for number, (frame, row) in enumerate(zip(frames, rows, strict=True)):
        amount = _numbers(frame, metric.column)
        if metric in OF_CALLS:
            amount = np.where(np.isnan(_numbers(frame, high)), np.nan, amount)
            values[number][row] = np.where(np.isnan(amount) & (metric is CALLS) & ~_called(frame), 0.0, amount)
        else:
            np.add.at(values[number], row, amount)
        if arms is not None:
            # Of a place that is not in a run no block was sampled: it may still have had some.
            absent = np.ones(size, np.bool_)
            absent[row] = False
            arms[1][number][absent] = none_seen(unit[number])[0]
            ends = amount - _numbers(frame, low), _numbers(frame, high) - amount
            for arm, reach in zip(arms, ends, strict=True):
                arm[number][row] = np.hypot(arm[number][row], np.maximum(np.nan_to_num(reach), 0.0))
            few = values[number] < LEAST_SEEN * unit[number]
            arms[0][number][few] = np.maximum(arms[0][number], values[number])[few]
            arms[1][number][few] = np.maximum(arms[1][number], none_seen(unit[number]))[few]
    if shares:
        whole = np.array([[_whole(metric, run, frame)] for run, frame in zip(runs, frames, strict=True)])
        with np.errstate(divide="ignore", invalid="ignore"):
            values, unit = values / whole, unit / whole
            arms = None if arms is None else arms / whole
    return Amounts(values, unit, *((None, None) if arms is None else (arms[0], arms[1])))


def _numbers(frame: pd.DataFrame, column: str) -> _Floats:
    """A column, NaN where it is unknown: numpy tells faster than pandas which are."""
    return np.asarray(frame[column].to_numpy(np.float64), np.float64)


def _is_known(frame: pd.DataFrame, column: str) -> bool:
    return not np.isnan(_numbers(frame, column)).all()


def _called(frame: pd.DataFrame) -> NDArray[np.bool_]:
    """True for functions that were called."""
    return ~np.isnan(_numbers(frame, "watched_s"))


def _known(metric: Metric, run: Run, frame: pd.DataFrame) -> bool:
    """True if a run knows a metric: a frame without rows knows what its totals know."""
    if metric.column not in frame:
        return False
    return _is_known(frame, metric.column) or (
        frame.empty and getattr(run.profile.totals, metric.column.removeprefix("total_"), None) is not None
    )


def _whole(metric: Metric, run: Run, frame: pd.DataFrame) -> float:
    """Whole of which a share is taken: the total of a run."""
    column = metric.column.removeprefix("total_")
    total = getattr(run.profile.totals, column, None)
    whole = float(total) if total is not None else float(frame[column].sum()) if column in frame else np.nan
    return whole if whole > 0 else np.nan


def totals(metrics: Sequence[Metric], sides: tuple[Sequence[Run], Sequence[Run]]) -> dict[str, tuple[Amounts, Amounts]]:
    """Amounts of the program as a whole in all runs, by metric."""
    amounts = {}
    for metric in metrics:
        both = []
        for runs in sides:
            values = [overall(run.profile, metric) for run in runs]
            if any(value is None for value in values):
                break
            units = [sampling_unit(run.profile, metric.sampled, run.parameters) for run in runs]
            arms = None
            if metric is WALL:
                # The time for which there was no processor is in the wall time, and is not the program's doing.
                arms = np.array([run.profile.totals.main_cpu_wait_s or 0.0 for run in runs])[:, None]
            both.append(Amounts(np.array(values, np.float64)[:, None], np.array(units)[:, None], arms, arms))
        if len(both) == 2:
            amounts[metric.name] = (both[0], both[1])
    return amounts


def overall(profile: Profile, metric: Metric) -> float | None:
    """A metric of the whole program, None where it is unknown."""
    memory = getattr(profile, "memory", None)
    source = memory if metric in (PEAK, RESIDENT) else profile.totals
    value: float | None = getattr(source, metric.column, None)
    return None if value is None else float(value)


def sampling_unit(profile: Profile, kind: str, parameters: dict[str, object]) -> float:
    """Weight of one independent observation, in seconds or bytes; 0: nothing was sampled."""
    interval = profile.metadata.interval_s or 0.01
    if kind == "cpu":
        effective = profile.totals.effective_samples
        return profile.totals.cpu_s / effective if effective > 0 else interval
    if kind == "wait":
        # Threads are sampled once in an interval: a wait that begins and ends in between is missed.
        return interval
    means = {"blocks": ("block_mean_bytes", 524_288), "copies": ("copies_mean_bytes", 1_048_576)}
    if kind in means:
        name, usual = means[kind]
        given = parameters.get(name)
        return float(given if isinstance(given, int) and given > 0 else usual)
    return 0.0
