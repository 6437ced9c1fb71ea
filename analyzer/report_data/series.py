"""Series over time for reports: bins of equal length, sums by place and bin, and the series made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..recording.opened import Recording
from ..recording.process_lifetimes import ProcessLifetimes
from ..recording.time_window import Window
from .flame_tree import FlamePaths
from .targets import Groups, Ids, Target, Values, with_below

MEASURES = ("python", "native", "kernel", "unknown", "main_wait", "wait", "allocated", "net", "copied")
"""Nanoseconds, then bytes. ``net`` is what was allocated and not yet freed, less what was freed of older blocks."""

CPU = ("python", "native", "kernel", "unknown")
TOTALS = ("cpu", "main_wait", "wait", "allocated")
"""Measures that are also summed with everything below."""

MAX_CELLS = 1 << 21
"""Numbers that are in memory at a time while bins are summed up."""

Grid = NDArray[np.float32]


@dataclass(frozen=True)
class Rows:
    """Some rows with the same treatment: ``place`` is a path place (``flame_paths``)."""

    time_bin: Ids
    place: Ids
    thread: NDArray[np.integer]
    weights: Mapping[str, Values]
    """Weights for each measure of ``MEASURES``; nanoseconds or bytes."""
    squared: Values | None = None
    """Weights of samples, squared, for the effective number of samples; None for rows that are not samples."""


@dataclass(frozen=True)
class BinSums:
    """Sums of one bin: for each measure, the places that have some of it, and their amounts."""

    number: int
    places: Mapping[str, tuple[NDArray[np.int32], Values]]


class PlaceSums:
    """Adds up rows by bin and place. They come roughly in the order of time, so one bin is in memory at a time."""

    def __init__(self) -> None:
        self._bins: list[BinSums] = []
        self._number = 0
        self._sums: dict[str, Values] = {}

    def bins(self) -> list[BinSums]:
        """The sums of everything that was added; a bin may be there more than once."""
        self._flush()
        return self._bins

    def add(self, rows: Rows) -> None:
        """Adds rows."""
        bins, place, weights = rows.time_bin, rows.place, rows.weights
        if not len(bins):
            return
        if len(bins) > 1 and (np.diff(bins) < 0).any():
            order = np.argsort(bins, kind="stable")
            bins, place = bins[order], place[order]
            weights = {name: values[order] for name, values in weights.items()}
        used = {name: values for name, values in weights.items() if values.any()}
        starts = np.flatnonzero(np.concatenate(([True], np.diff(bins) > 0)))
        for first, end in zip(starts.tolist(), [*starts[1:].tolist(), len(bins)], strict=True):
            part = slice(first, end)
            if bins[first] != self._number:
                self._flush()
                self._number = int(bins[first])
            for name, values in used.items():
                sums = np.asarray(np.bincount(place[part], values[part]), np.float64)
                self._sums[name] = _added(self._sums[name], sums) if name in self._sums else sums

    def _flush(self) -> None:
        places = {}
        for name, values in self._sums.items():
            place = np.flatnonzero(values)
            if len(place):
                places[name] = (place.astype(np.int32), values[place])
        self._sums = {}
        if places:
            self._bins.append(BinSums(self._number, places))


def _added(one: Values, other: Values) -> Values:
    """The sum of two arrays, the shorter one with zeros behind it: places come to be as they are found."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    longer[: len(shorter)] += shorter
    return longer


@dataclass
class Series:
    """Sums of one target: by measure an array of rows by bins; ``total`` is with everything that was called."""

    own: dict[str, Grid] = field(default_factory=dict)
    total: dict[str, Grid] = field(default_factory=dict)


def make_series(
    sums: Sequence[BinSums],
    paths: FlamePaths,
    spans: tuple[Ids, Ids],
    bins: int,
    targets: Mapping[str, Target],
    flame: Groups | None = None,
) -> dict[str, Series]:
    """The series of each target and of the flame graph, of sums by path place. ``spans`` are those of the call tree."""
    series = {name: Series() for name in (*targets, *(() if flame is None else ("flame",)))}
    of_path = Groups(paths.of_path, int(paths.of_path.max(initial=-1)) + 1)
    for numbers, drawn in _chunks(sums, paths.size):
        by_place = {name: of_path.sums(values) for name, values in drawn.items()}
        _put_all(series, numbers, bins, by_place, drawn, spans, targets, flame)
    return series


def _chunks(bins: Sequence[BinSums], places: int) -> Iterator[tuple[Ids, dict[str, Values]]]:
    """As many bins at a time as there is room for: their numbers, and by measure their sums, bins by places."""
    most = max(1, MAX_CELLS // max(1, places * len(MEASURES)))
    for first in range(0, len(bins), most):
        chunk = bins[first : first + most]
        numbers, row = np.unique([each.number for each in chunk], return_inverse=True)
        measure_sums: dict[str, Values] = {}
        for at, each in zip(row.tolist(), chunk, strict=True):
            for name, (place, values) in each.places.items():
                if name not in measure_sums:
                    measure_sums[name] = np.zeros((len(numbers), places))
                measure_sums[name][at, place] += values
        yield numbers, measure_sums


def _put_all(
    series: Mapping[str, Series],
    numbers: Ids,
    bins: int,
    by_place: Mapping[str, Values],
    drawn: Mapping[str, Values],
    spans: tuple[Ids, Ids],
    targets: Mapping[str, Target],
    flame: Groups | None,
) -> None:
    own = np.concatenate(list(by_place.values()))
    totals = _totals(by_place, len(spans[0]))
    below = with_below(np.concatenate(list(totals.values())), spans) if totals else None
    if flame is not None:
        _put(series["flame"].own, drawn, flame.sums(np.concatenate(list(drawn.values()))), numbers, bins)
    for name, target in targets.items():
        _put(series[name].own, by_place, target.own.sums(own), numbers, bins)
        if below is not None:
            _put(series[name].total, totals, target.total.sums(below), numbers, bins)


def _totals(sums: Mapping[str, Values], nodes: int) -> dict[str, Values]:
    cpu = [sums[name] for name in CPU if name in sums]
    totals = {"cpu": np.sum(cpu, axis=0)} if cpu else {}
    totals.update({name: sums[name] for name in TOTALS if name in sums})
    return {name: values[:, :nodes] for name, values in totals.items()}


def _put(into: dict[str, Grid], names: Mapping[str, Values], values: Values, numbers: Ids, bins: int) -> None:
    """Adds the sums of the bins ``numbers``, which are below one another by measure."""
    for name, rows in zip(names, np.split(values, len(names)), strict=True):
        if name not in into:
            into[name] = np.zeros((rows.shape[1], bins), np.float32)
        into[name][:, numbers] += rows.T


BINS = 120
"""Spans at most: enough to see what happened when, few enough to keep a value of each line in each."""


FINEST = 4
"""Sampling intervals in a span, at least."""


@dataclass(frozen=True, slots=True)
class Bins:
    """``count`` spans of ``width_ns`` from ``start_ns`` on; ``offset_ns`` is where they begin in the recording."""

    start_ns: int
    width_ns: float
    count: int
    offset_ns: int

    @property
    def width_s(self) -> float:
        """Seconds of one span."""
        return self.width_ns / 1e9

    @property
    def start_s(self) -> float:
        """Seconds from the start of the recording to the first span."""
        return self.offset_ns / 1e9

    @property
    def end_s(self) -> float:
        """Seconds from the start of the recording to the end of the last span."""
        return self.start_s + self.count * self.width_s

    def index(self, time_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """The span of each moment; what lies outside is put into the nearest."""
        number = np.floor((time_ns - self.start_ns) / self.width_ns).astype(np.int64)
        clipped: NDArray[np.int64] = np.clip(number, 0, self.count - 1)
        return clipped

    def middles_s(self) -> NDArray[np.float64]:
        """The middle of each span, seconds from the start of the recording."""
        return np.asarray(self.start_s + (np.arange(self.count) + 0.5) * self.width_s, np.float64)


def make_bins(recording: Recording, window: Window, lifetimes: ProcessLifetimes, count: int = BINS) -> Bins:
    """Divides the part of a recording that lies in ``window``; a span is never shorter than four sampling intervals.

    In shorter ones the chance of a sample more would look like more cores than there are.
    """
    start = max(recording.start_ns, window.start_ns)
    end = recording.end_ns
    if end is None:
        end = max([start, *lifetimes.end_ns.tolist()])
    end = max(min(end, window.end_ns), start + 1)
    interval = recording.interval_ns or 10_000_000
    fitting = max(1, min(count, (end - start) // (FINEST * interval)))
    return Bins(start, (end - start) / fitting, int(fitting), start - recording.start_ns)
