"""The columns about calls in the frame of functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...recording.call_tree import CallTree
from ...recording.frame import Column, Frame, WholeNumbers
from ...recording.text import printable
from ...statistics.grouped_sums import summed
from .call_estimates import BUCKETS, DIGITS, EIGHTHS, CallFacts, Floats, Ids, estimate_calls, mean_times

_TIMES = ("mean_s", "mean_s_low", "mean_s_high", "sd_s", "p50_s", "p90_s", "p99_s", "max_s")
_QUANTILES = ("p50_s", "p90_s", "p99_s")
QUANTILES = (0.5, 0.9, 0.99)
COLUMNS = (
    *("calls", "calls_low", "calls_high", "watched_s"),
    *(f"call_{name}" for name in _TIMES),
    *(f"own_call_{name}" for name in _TIMES),
    "call_times",
)


def with_calls(functions: Frame, facts: CallFacts | None, tree: CallTree) -> Frame:
    """The frame of functions with ``COLUMNS``; functions that were called and never sampled are added at its end.

    ``calls`` is how often a function was called, with the 95 % interval; ``watched_s`` how long it was watched.
    ``call_mean_s`` (with its 95 % interval), ``call_sd_s`` (the standard deviation) to ``call_max_s`` are times of its
    calls, with all that they called, and ``own_call_...`` those without the Python functions that they called.
    ``call_times`` is a list of (seconds, calls): the upper end of a power of two and how many calls are below it and
    not below the one before. NaN and None are unknown.
    """
    if facts is None:
        nothing = {name: np.full(len(functions), np.nan) for name in COLUMNS if name != "call_times"}
        return functions.with_columns({**nothing, "call_times": [None] * len(functions)})
    columns, called = _columns(facts)
    places = _places(functions)
    rows = np.array([places.get(_label(tree, function), -1) for function in called.tolist()], np.int64)
    missing = np.flatnonzero(rows < 0)
    rows[missing] = len(functions) + np.arange(len(missing))
    whole = _longer(functions, [_label(tree, int(called[at])) for at in missing], tree.paths)
    more: dict[str, Column | list[Any]] = {}
    for name, values in columns.items():
        if isinstance(values, list):
            listed: list[Any] = [None] * len(whole)
            for row, value in zip(rows.tolist(), values, strict=True):
                listed[row] = value
            more[name] = listed
        else:
            placed = np.full(len(whole), np.nan)
            placed[rows] = values
            more[name] = placed
    return whole.with_columns(more)


_Label = tuple[int, str, int]


def _label(tree: CallTree, function: int) -> _Label:
    file, line = int(tree.function_files[function]), int(tree.function_lines[function])
    return file, printable(tree.function_names[function]), line


def _places(functions: Frame) -> dict[_Label, int]:
    labels = zip(functions["file_id"].tolist(), functions["function"], functions["line"].tolist(), strict=True)
    return {(file, name, line): row for row, (file, name, line) in enumerate(labels) if line is not None}


def _longer(functions: Frame, labels: list[_Label], paths: list[str]) -> Frame:
    """The frame with an empty row for each label."""
    if not labels:
        return functions
    appended: dict[str, list[Any]] = {
        "function": [name for _, name, _ in labels],
        "file": [printable(paths[file]) for file, _, _ in labels],
        "file_id": [file for file, _, _ in labels],
        "language": ["python"] * len(labels),
    }
    columns: dict[str, Column | list[Any]] = {}
    for name, values in functions.columns.items():
        if name == "line":
            columns[name] = WholeNumbers.of([*values.tolist(), *(line for _, _, line in labels)])
        elif name in appended:
            columns[name] = _appended(values, appended[name])
        else:
            columns[name] = _appended(values, [_nothing(values)] * len(labels))
    return Frame(columns)


def _nothing(values: Column) -> Any:
    """Value of a column in a row without any measure: 0, unless no row's value is known."""
    if isinstance(values, WholeNumbers):
        return None if len(values) and values.unknown.all() else 0
    if values.dtype == object:
        return None
    return np.nan if values.dtype.kind == "f" and len(values) and np.isnan(values).all() else 0


def _appended(values: Column, more: list[Any]) -> Column | list[Any]:
    if isinstance(values, WholeNumbers):
        return WholeNumbers.of([*values.tolist(), *more])
    if values.dtype == object:
        return [*values.tolist(), *more]
    return np.concatenate([values, np.array(more, values.dtype)])


def _columns(facts: CallFacts) -> tuple[dict[str, Floats | list[Any]], Ids]:
    """The columns by function, and the functions."""
    estimates = estimate_calls(facts)
    called, function = np.unique(facts.function, return_inverse=True)
    function = function.reshape(-1)
    count = len(called)

    period = function[facts.group]
    weight = estimates.weight
    calls = summed(function, estimates.calls, count)
    columns: dict[str, Floats | list[Any]] = {
        "calls": calls,
        "calls_low": calls - np.sqrt(summed(function, (estimates.calls - estimates.low) ** 2, count)),
        "calls_high": calls + np.sqrt(summed(function, (estimates.high - estimates.calls) ** 2, count)),
        "watched_s": summed(period, facts.sums["watched_ns"], count) / 1e9,
    }
    for end, values in (("low", estimates.low), ("high", estimates.high)):
        ends = summed(function, values, count)
        columns[f"calls_{end}"] = np.where(np.isnan(calls), ends, columns[f"calls_{end}"])
    exact = np.ones(count, np.bool_)
    np.logical_and.at(exact, period, facts.sums["watched_ns"] >= facts.span_ns)
    watched = summed(period, facts.sums["calls"] * weight, count)
    for prefix, begun, ended, total, squared, longest, times in (
        ("", "calls", "ended", "total_ns", "total_squared", "longest_ns", facts.times),
        ("own_", "own_begun", "own_ended", "own_ns", "own_squared", "own_longest_ns", facts.own_times),
    ):
        cells = period[times.period] * BUCKETS + times.bucket
        histogram = summed(cells, times.calls * weight[times.period], count * BUCKETS).reshape(count, BUCKETS)
        n_begun, n_ended = (summed(period, facts.sums[name] * weight, count) for name in (begun, ended))
        most = np.zeros(count)
        np.maximum.at(most, period, facts.longest[longest])
        sums = [facts.sums[name] for name in (ended, total, squared)]
        whole = exact & (n_ended >= watched * (1 - 1e-9))
        columns |= {
            f"{prefix}call_{name}": values
            for name, values in mean_times(period, count, weight, *sums, begun=n_begun, exact=whole).items()
        }
        for name, part in zip(_QUANTILES, QUANTILES, strict=True):
            columns[f"{prefix}call_{name}"] = quantiles(histogram, n_begun, most, part, eighths=facts.eighths)
        columns[f"{prefix}call_max_s"] = np.where(n_ended > 0, most / 1e9, np.nan)
        if not prefix:
            columns["call_times"] = [_listed(row) for row in histogram]
    return columns, called


def quantiles(histogram: Floats, calls: Floats, most: Floats, part: float, *, eighths: bool) -> Floats:
    """Quantiles in seconds, by row: within the bucket that holds them, and at most ``most`` ns.

    ``calls`` are all calls; those that are not in the histogram have not ended, and count as longer than all others.
    NaN where such a one is the quantile, and without calls. ``eighths``: buckets are eighths of powers of two, which
    are else in the place of their first eighth.
    """
    below = np.cumsum(histogram, axis=1)
    calls = np.maximum(calls, below[:, -1])
    rank = part * calls
    reached = below >= np.maximum(rank, 1e-12)[:, None]
    bucket = np.argmax(reached, axis=1)
    row = np.arange(len(histogram))
    inside = histogram[row, bucket]
    before = below[row, bucket] - inside
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(inside > 0, (rank - before) / inside, 0.0)
    share = np.clip(share, 0.0, 1.0)
    digits, eighth = np.divmod(bucket, EIGHTHS)
    within = (EIGHTHS + eighth + share) / EIGHTHS if eighths else np.exp2(share)
    time = np.where(digits > 0, np.exp2(digits - 1) * within, 0.0)
    return np.where((calls > 0) & reached.any(axis=1), np.minimum(time, most) / 1e9, np.nan)


def _listed(histogram: Floats) -> list[tuple[float, float]] | None:
    powers = histogram.reshape(DIGITS, EIGHTHS).sum(axis=1)
    filled = np.flatnonzero(powers)
    return [(2.0**digits / 1e9, float(powers[digits])) for digits in filled.tolist()] or None
