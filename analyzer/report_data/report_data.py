"""The data of a report: the series behind every chart and table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..profile.build import Asked, Measured, ask, conclude, measure
from ..profile.profile import Profile
from ..profile.question import Question
from ..recording.call_tree import CallTree
from ..recording.opened import Recording
from ..recording.tree import NOTHING
from ..samples.nodes import Calls
from ..samples.summary import main_threads
from .bins import Bins, make_bins
from .flame import Flame, build_flame
from .flame_paths import FlamePaths, flame_paths, flame_weights, held_weights
from .heap_rows import memory_rows
from .labels import HELD, Labels
from .sampled import Sampled
from .series import CPU, BinSums, PlaceSums, Series, make_series
from .spans_over_time import SpanPart, SpansOverTime
from .targets import (
    MAX_FILES,
    MAX_FUNCTIONS,
    MAX_LINES,
    Charged,
    Groups,
    Target,
    Values,
    file_keys,
    function_keys,
    line_keys,
)

MAX_THREADS = 200
"""Threads that are drawn at most."""


@dataclass(frozen=True)
class Part:
    """Some rows of one of the profile's frames with their series: self and total by measure, rows by spans."""

    frame: pd.DataFrame
    series: Series
    left_out: int


@dataclass(frozen=True)
class Basis:
    """What was measured for an answer and divided into bins of time: the same in any scope."""

    asked: Asked
    measured: Measured
    labels: Labels
    sums: list[BinSums]
    """By path place."""


@dataclass(frozen=True)
class ReportData:
    """What is drawn. Values are nanoseconds or bytes; grids are rows by spans of ``bins``."""

    profile: Profile
    bins: Bins
    tree: CallTree
    labels: list[str]
    """Names of what has no stack; ``flame`` refers to them."""
    in_scope: NDArray[np.bool_]
    """Whether each function of the call tree is in scope."""
    lines: Part
    functions: Part
    files: Part
    threads: Part
    flame: Flame
    flame_series: Series
    flame_paths: FlamePaths
    """Names of the functions of ``flame``, Python's and native ones."""
    flame_held: dict[str, Values]
    """By column of ``labels.HELD`` that is known, the bytes that each node of ``flame`` held itself at that moment."""
    overall: dict[str, Values]
    """By span: each of ``series.MEASURES`` that was recorded, ``samples``, ``weight`` and ``weight_squared``."""
    spans: SpanPart | None
    basis: Basis


def build_report_data(recording: Recording, question: Question) -> ReportData:
    """Answers a question, and divides what the profile sums up into bins of time; samples are read once for both.

    Errors:
        FormatError: the recording is damaged, or the question does not fit it.
    """
    asked = ask(recording, question)
    bins = make_bins(recording, asked.window)
    sampled = Sampled(asked.stream, asked.paths, bins, main_threads(recording.table("threads")))
    spans = SpansOverTime(asked, bins) if len(asked.ranges[1]) else None
    measured = measure(asked, sampled, *([] if spans is None else [spans.sums]))
    profile = conclude(asked, measured)
    calls = profile.calls
    tree, labels = calls.tree, Labels(calls)
    places = PlaceSums()
    paths = flame_paths(profile.paths, labels)
    for rows in memory_rows(measured.held, measured.held_paths, paths, labels, bins):
        places.add(rows)
        sampled.add_up(rows)
    flame, targets = build_flame(paths.tree, flame_weights(paths, profile.paths, labels)), _targets(profile, labels)
    in_flame = Groups(flame.place, len(flame.parent))
    basis = Basis(asked, measured, labels, [*sampled.places.bins(), *places.bins()])
    series = make_series(basis.sums, paths, tree.spans, bins.count, targets, in_flame)
    overall = {name: grid[0].astype(np.float64) for name, grid in sampled.everything.grids.items()}
    threads = profile.threads.loc[np.sort(profile.threads.index.to_numpy()[:MAX_THREADS])]
    by_thread = Series(sampled.threads.of(threads["thread"].to_numpy(np.int64)))
    return ReportData(
        profile=profile,
        bins=bins,
        tree=tree,
        labels=labels.names,
        in_scope=_functions_in_scope(calls),
        **_charged_parts(profile, targets, series),
        threads=Part(threads, by_thread, len(profile.threads) - len(threads)),
        flame=flame,
        flame_series=series["flame"],
        flame_paths=paths,
        flame_held=_held(labels, paths, profile, in_flame),
        overall=overall,
        spans=None if spans is None or profile.spans is None else spans.part(profile.spans, measured.held, overall),
        basis=basis,
    )


def in_other_scope(data: ReportData, scope: str) -> ReportData:
    """The same with other lines charged: it is concluded again from what was measured, which is not read again."""
    basis = data.basis
    asked = replace(basis.asked, question=replace(basis.asked.question, scope=scope))
    profile = conclude(asked, basis.measured)
    targets = _targets(profile, basis.labels)
    series = make_series(basis.sums, data.flame_paths, data.tree.spans, data.bins.count, targets)
    return replace(
        data,
        profile=profile,
        in_scope=_functions_in_scope(profile.calls),
        **_charged_parts(profile, targets, series),
        basis=replace(basis, asked=asked),
    )


def _held(labels: Labels, paths: FlamePaths, profile: Profile, in_flame: Groups) -> dict[str, Values]:
    measured = (name for name in HELD if name in profile.paths.held)
    known = {name: values for name in measured if (values := labels.sums(name)) is not None}
    drawn = {name: held_weights(paths, profile.paths, labels, name, values) for name, values in known.items()}
    return {name: in_flame.sums(values[np.newaxis])[0] for name, values in drawn.items()}


def _targets(profile: Profile, labels: Labels) -> dict[str, Target]:
    calls = profile.calls
    charged = Charged(calls, labels.names)
    tree, lines, functions, files = calls.tree, profile.lines, profile.functions, profile.files
    return {
        "lines": charged.target(lines, *line_keys(tree, lines), "function", MAX_LINES),
        "functions": charged.target(functions, *function_keys(tree, functions), "function", MAX_FUNCTIONS),
        "files": charged.target(files, *file_keys(tree, files), "file", MAX_FILES),
    }


def _charged_parts(profile: Profile, targets: Mapping[str, Target], series: Mapping[str, Series]) -> dict[str, Any]:
    """The parts that depend on the scope, under their names."""
    return {name: _part(getattr(profile, name), target, series[name]) for name, target in targets.items()}


def _part(frame: pd.DataFrame, target: Target, series: Series) -> Part:
    kept = frame.iloc[target.rows].reset_index(drop=True)
    # Rows without a line call nothing: what is theirs is also their total.
    lineless = (kept["file_id"] == NOTHING).to_numpy()
    for name, grid in series.total.items():
        own = [series.own[part] for part in (CPU if name == "cpu" else (name,)) if part in series.own]
        grid[lineless] = np.sum([values[lineless] for values in own], axis=0)
    return Part(kept, series, target.left_out)


def _functions_in_scope(calls: Calls) -> NDArray[np.bool_]:
    """Whether each function has a node in scope; one more at the end for unknown code."""
    tree = calls.tree
    result = np.zeros(len(tree.function_names) + 1, np.bool_)
    result[tree.function[calls.in_scope]] = True
    return result


def coarser(data: ReportData) -> ReportData:
    """The same with half as many spans of time."""
    bins = data.bins
    count = (bins.count + 1) // 2

    def halves(values: NDArray[np.floating[Any]]) -> NDArray[Any]:
        padded = np.zeros((*values.shape[:-1], 2 * count), values.dtype)
        padded[..., : bins.count] = values
        return np.asarray(padded[..., 0::2] + padded[..., 1::2])

    def series(whole: Series) -> Series:
        own = {name: halves(grid) for name, grid in whole.own.items()}
        return Series(own, {name: halves(grid) for name, grid in whole.total.items()})

    parts = {
        name: replace(getattr(data, name), series=series(getattr(data, name).series))
        for name in ("lines", "functions", "files", "threads")
    }
    return replace(
        data,
        bins=Bins(bins.start_ns, bins.width_ns * 2, count, bins.offset_ns),
        flame_series=series(data.flame_series),
        overall={name: halves(values) for name, values in data.overall.items()},
        spans=data.spans and replace(data.spans, grids={name: halves(grid) for name, grid in data.spans.grids.items()}),
        **parts,
    )
