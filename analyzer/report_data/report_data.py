"""Draws up a recording: the series behind every chart and table of a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..profile.build import asked_window
from ..profile.profile import Profile
from ..recording.call_tree import NOTHING, CallTree
from ..recording.filter import choose
from ..recording.interpreter_phases import find_edges
from ..recording.named_spans import read_spans
from ..recording.opened import Recording
from ..recording.release import release_unused
from ..samples.nodes import Calls
from ..samples.reduction import waits_recorded
from ..samples.summary import main_threads
from .bins import Bins, make_bins
from .flame import Flame, build_flame
from .groups import Groups
from .heap_rows import copy_rows, heap_rows
from .labels import Labels
from .named_spans import SpanPart, draw_spans
from .sink import CPU, MEASURES, Series, Sink
from .streams import Rows, cpu_rows, wait_rows
from .targets import MAX_FILES, MAX_FUNCTIONS, MAX_LINES, Charged, Target, file_keys, function_keys, line_keys

MAX_THREADS = 200
"""Threads that are drawn at most."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """Some rows of one of the profile's frames with their series: self and total by measure, rows by spans."""

    frame: pd.DataFrame
    series: Series
    left_out: int


@dataclass(frozen=True)
class Picture:
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
    overall: dict[str, Values]
    """By span: each of ``sink.MEASURES`` that was recorded, ``samples``, ``weight`` and ``weight_squared``."""
    spans: SpanPart | None = None


def draw_up(recording: Recording, profile: Profile) -> Picture:
    """Divides what a profile sums up into spans of time.

    Errors:
        FormatError: the recording is damaged.
    """
    question = profile.question
    chosen = choose(recording, question.thread, question.processes)
    window = asked_window(recording, question, chosen, read_spans(recording))
    bins = make_bins(recording, window)
    calls = profile.calls
    labels = Labels(calls)
    table = recording.table("threads")
    edges = find_edges(recording)
    release_unused()

    def rows() -> Iterator[Rows]:
        yield from cpu_rows(recording, edges, labels, window, bins, question.attribution, chosen.threads)
        if waits_recorded(recording):
            yield from wait_rows(recording, edges, labels, window, bins, main_threads(table), chosen.threads)
        yield from heap_rows(recording, labels, window, bins, chosen)
        yield from copy_rows(recording, labels, window, bins, chosen.threads)

    tree = calls.tree
    flame = build_flame(tree, labels.weights())
    targets = _targets(profile, labels)
    kept = np.sort(profile.threads.index.to_numpy()[:MAX_THREADS])
    by_thread = _Totals(table.num_rows, bins.count)
    everything = _Totals(1, bins.count)
    sink = Sink(tree.spans, len(tree) + len(labels.names), bins.count, targets, Groups(flame.place, len(flame.parent)))
    for part in rows():
        sink.add(part.time_bin, part.place, part.weights)
        by_thread.add(part.time_bin, part.thread, part.weights)
        everything.add(part.time_bin, np.zeros(len(part.thread), np.int64), _observed(part))
    series = sink.series()
    threads = profile.threads.loc[kept]
    numbers = threads["thread"].to_numpy(np.int64)
    overall = {name: grid[0].astype(np.float64) for name, grid in everything.grids.items()}
    return Picture(
        profile=profile,
        bins=bins,
        tree=tree,
        labels=labels.names,
        in_scope=_functions_in_scope(calls),
        lines=_part(profile.lines, targets["lines"], series["lines"]),
        functions=_part(profile.functions, targets["functions"], series["functions"]),
        files=_part(profile.files, targets["files"], series["files"]),
        threads=Part(threads, Series(by_thread.of(numbers)), len(profile.threads) - len(threads)),
        flame=flame,
        flame_series=series["flame"],
        overall=overall,
        spans=draw_spans(recording, profile, window, bins, chosen, overall),
    )


def _targets(profile: Profile, labels: Labels) -> dict[str, Target]:
    calls = profile.calls
    charged = Charged(calls, labels.names)
    tree, lines, functions, files = calls.tree, profile.lines, profile.functions, profile.files
    return {
        "lines": charged.target(lines, *line_keys(tree, lines), "function", MAX_LINES),
        "functions": charged.target(functions, *function_keys(tree, functions), "function", MAX_FUNCTIONS),
        "files": charged.target(files, *file_keys(tree, files), "file", MAX_FILES),
    }


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


def _observed(part: Rows) -> dict[str, Values]:
    """The measures of rows, and of samples what their intervals need."""
    if part.squared is None:
        return part.weights
    weight = np.sum(list(part.weights.values()), axis=0)
    return {**part.weights, "samples": np.ones(len(weight)), "weight": weight, "weight_squared": part.squared}


class _Totals:
    """Sums by row and span of time, without regard to place."""

    def __init__(self, rows: int, bins: int) -> None:
        self._rows = rows
        self._bins = bins
        self.grids: dict[str, Values] = {}

    def add(self, bins: NDArray[np.int64], row: NDArray[np.int64], weights: dict[str, Values]) -> None:
        key = row * self._bins + bins
        for name, values in weights.items():
            sums = np.bincount(key, weights=values, minlength=self._rows * self._bins)
            known = self.grids.setdefault(name, np.zeros((self._rows, self._bins)))
            known += sums.reshape(self._rows, self._bins)

    def of(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
        """The grids of some rows, for the measures that are known."""
        return {name: grid[rows].astype(np.float32) for name, grid in self.grids.items() if name in MEASURES}


def coarser(picture: Picture) -> Picture:
    """The same with half as many spans of time."""
    bins = picture.bins
    count = (bins.count + 1) // 2

    def halves(values: NDArray[np.floating[Any]]) -> NDArray[Any]:
        padded = np.zeros((*values.shape[:-1], 2 * count), values.dtype)
        padded[..., : bins.count] = values
        return np.asarray(padded[..., 0::2] + padded[..., 1::2])

    def series(whole: Series) -> Series:
        own = {name: halves(grid) for name, grid in whole.own.items()}
        return Series(own, {name: halves(grid) for name, grid in whole.total.items()})

    parts = {
        name: replace(getattr(picture, name), series=series(getattr(picture, name).series))
        for name in ("lines", "functions", "files", "threads")
    }
    return replace(
        picture,
        bins=Bins(bins.start_ns, bins.width_ns * 2, count, bins.offset_ns),
        flame_series=series(picture.flame_series),
        overall={name: halves(values) for name, values in picture.overall.items()},
        spans=picture.spans
        and replace(picture.spans, grids={name: halves(grid) for name, grid in picture.spans.grids.items()}),
        **parts,
    )
