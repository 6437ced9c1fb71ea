"""The data of a report: the series behind every chart and table, and the views that a page offers beside its answer.

A view is another scope, or a single thread, process or name of spans. Each is the answer to a question of its own, so
that it says what ``analyze --scope``, ``--thread``, ``--process`` and ``--span`` say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..profile.build import Measured, ResolvedQuestion, ask, conclude, measure
from ..profile.profile import Profile
from ..profile.question import Question
from ..profile.span_sums import NO_SPAN
from ..recording.call_tree import NOTHING, CallTree
from ..recording.opened import Recording
from ..recording.recorded_spans import read_spans
from ..recording.text import printable
from ..samples.sites import Calls
from ..samples.summary import ALL, PROJECT
from .flame_tree import Flame, FlamePaths, build_flame, flame_paths, flame_weights, held_weights
from .sampled import Sampled, memory_rows
from .series import CPU, Bins, BinSums, PlaceSums, Series, make_bins, make_series
from .spans_over_time import SpanPart, SpansOverTime
from .targets import (
    HELD,
    MAX_FILES,
    MAX_FUNCTIONS,
    MAX_LINES,
    Charged,
    Groups,
    Labels,
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
    """Measurements of an answer, divided into bins of time; they do not depend on the scope."""

    resolved: ResolvedQuestion
    measured: Measured
    labels: Labels
    sums: list[BinSums]
    """Sums of each bin, by path place."""


@dataclass(frozen=True)
class ReportData:
    """A profile with the series that reports draw. Values are nanoseconds or bytes; grids are rows by ``bins``."""

    profile: Profile
    bins: Bins
    tree: CallTree
    labels: list[str]
    """Names of what has no stack; ``flame`` refers to them."""
    in_scope: NDArray[np.bool_]
    """True for each function of the call tree that is in scope."""
    lines: Part
    functions: Part
    files: Part
    threads: Part
    flame: Flame
    flame_series: Series
    flame_paths: FlamePaths
    """Names of the functions of ``flame``, Python's and native ones."""
    flame_held: dict[str, Values]
    """Bytes that each node of ``flame`` held itself at a moment, by column of ``targets.HELD`` that is known."""
    overall: dict[str, Values]
    """Sums of the whole program by bin: recorded ``series.MEASURES``, ``samples``, ``weight``, ``weight_squared``."""
    spans: SpanPart | None
    basis: Basis


def build_report_data(recording: Recording, question: Question) -> ReportData:
    """Answers a question, and divides what the profile sums up into bins of time; samples are read once for both.

    Errors:
        FormatError: the recording is damaged, or the question does not fit it.
    """
    resolved = ask(recording, question)
    bins = make_bins(recording, resolved.window, resolved.lifetimes)
    sampled = Sampled(resolved.stream, resolved.paths, bins, recording.all_threads.main)
    spans = SpansOverTime(resolved, bins) if len(resolved.ranges[1]) else None
    measured = measure(resolved, sampled, *([] if spans is None else [spans.sums]))
    profile = conclude(resolved, measured)
    calls = profile.calls
    tree, labels = calls.tree, Labels(calls)
    places = PlaceSums()
    paths = flame_paths(profile.paths, labels)
    for rows in memory_rows(measured.held, measured.held_paths, paths, labels, bins):
        places.add(rows)
        sampled.add_up(rows)
    flame, targets = build_flame(paths.tree, flame_weights(paths, profile.paths, labels)), _targets(profile, labels)
    in_flame = Groups(flame.place, len(flame.parent))
    basis = Basis(resolved, measured, labels, [*sampled.places.bins(), *places.bins()])
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
    """``data`` under another scope, concluded again from its measurements; the recording is not read again."""
    basis = data.basis
    resolved = replace(basis.resolved, question=replace(basis.resolved.question, scope=scope))
    profile = conclude(resolved, basis.measured)
    targets = _targets(profile, basis.labels)
    series = make_series(basis.sums, data.flame_paths, data.tree.spans, data.bins.count, targets)
    return replace(
        data,
        profile=profile,
        in_scope=_functions_in_scope(profile.calls),
        **_charged_parts(profile, targets, series),
        basis=replace(basis, resolved=resolved),
    )


def _held(labels: Labels, paths: FlamePaths, profile: Profile, in_flame: Groups) -> dict[str, Values]:
    measured = (name for name in HELD if name in profile.paths.held)
    by_place = {name: values for name in measured if (values := labels.sums(name)) is not None}
    drawn = {name: held_weights(paths, profile.paths, labels, name, values) for name, values in by_place.items()}
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
    """True for each function that has a node in scope; one more entry at the end for unknown code."""
    tree = calls.tree
    result = np.zeros(len(tree.function_names) + 1, np.bool_)
    result[tree.function[calls.in_scope]] = True
    return result


def coarser(data: ReportData) -> ReportData:
    """``data`` with half as many bins of time."""
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


MAX_VIEWED_THREADS, MAX_PROCESSES, MAX_SPANS = 8, 6, 6
"""Threads, processes and names of spans that can be chosen: those with most CPU time, then with most waiting."""

MAX_ROWS = 400_000
"""Samples, waits and blocks of a recording that is read once more for each view; of a larger one there are none."""

SCOPES = {PROJECT: "libraries charged to the project", ALL: "all code, libraries too"}


@dataclass(frozen=True)
class View:
    """An answer that can be chosen; ``kind`` is ``scope``, ``thread``, ``process`` or ``span``."""

    kind: str
    label: str
    data: ReportData


def build_views(recording: Recording, question: Question, data: ReportData) -> list[View]:
    """The views beside ``data``, which is the answer to ``question``; none of a recording that is too large.

    Errors:
        FormatError: the recording is damaged.
    """
    if is_large(recording):
        return []
    views = []
    for scope, label in SCOPES.items():
        if scope != data.profile.scope:
            recording.step(f"the same of {label}")
            views.append(View("scope", label, in_other_scope(data, scope)))
    for kind, label, other in _questions(recording, question, data):
        recording.step(f"the same of {label}")
        views.append(View(kind, label, build_report_data(recording, other)))
    return views


def is_large(recording: Recording) -> bool:
    """True if reading a recording once for each view would take too long."""
    return sum(map(recording.rows, ("cpu", "waits", "allocations"))) > MAX_ROWS


def _questions(recording: Recording, question: Question, data: ReportData) -> Iterator[tuple[str, str, Question]]:
    """The questions about single threads, processes and names of spans: kind of view, label, question."""
    profile = data.profile
    threads, processes = profile.threads, profile.processes
    if question.thread is None and len(threads) > 1:
        names = processes.set_index("process")["name"].to_dict() if len(processes) > 1 else {}
        with_id = threads[threads["tid"].notna()]
        for row in _busiest(with_id).head(MAX_VIEWED_THREADS).itertuples():
            owner = f" of {names[row.process]}" if row.process in names else ""
            label = f"{row.name}{owner} ({row.tid})" if isinstance(row.name, str) else f"thread {row.tid}{owner}"
            yield "thread", label, replace(question, scope=profile.scope, thread=str(row.tid))
    sampled = processes[processes["samples"] > 0]
    if len(sampled) > 1:
        for row in sampled.sort_values("cpu_s", ascending=False, kind="stable").head(MAX_PROCESSES).itertuples():
            chosen = replace(question, scope=profile.scope, processes=(f"id={row.process}",))
            yield "process", f"{row.name} ({row.pid})", chosen
    if question.span is None and profile.frames.spans is not None:
        names = set(read_spans(recording).names)
        yield from _span_questions(question, profile.scope, profile.frames.spans, names)


def _span_questions(
    question: Question, scope: str, spans: pd.DataFrame, recorded: set[str]
) -> Iterator[tuple[str, str, Question]]:
    """The questions about the names of spans that took most time; ``recorded`` are all names, as they were given."""
    waited, ran = (np.nan_to_num(spans[name]) for name in ("total_wait_s", "total_cpu_s"))
    largest = [row for row in np.lexsort((-waited, -ran)).tolist() if waited[row] + ran[row] > 0]
    for label in [spans["name"][row] for row in largest if spans["name"][row] != NO_SPAN][:MAX_SPANS]:
        for name in sorted(each for each in recorded if printable(each, 500) == label):
            pattern = re.sub(
                r"[][*?]", "?", name
            )  # a question takes patterns, and has no way to write these characters
            if [each for each in recorded if fnmatchcase(each, pattern)] == [name]:
                yield "span", label, replace(question, scope=scope, span=pattern)


def _busiest(threads: pd.DataFrame) -> pd.DataFrame:
    return threads.sort_values(["cpu_s", "wait_s"], ascending=False, kind="stable")
