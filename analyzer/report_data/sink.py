"""Adds up values by span of time and target. Rows come in the order of time, so one span is in memory at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .groups import Groups, Ids, with_below
from .targets import Target

MEASURES = ("python", "native", "kernel", "unknown", "main_wait", "wait", "allocated", "net", "copied")
"""Nanoseconds, then bytes. ``net`` is what was allocated and not yet freed, less what was freed of older blocks."""

CPU = ("python", "native", "kernel", "unknown")
TOTALS = ("cpu", "main_wait", "wait", "allocated")
"""Measures that are also summed with everything below."""

Values = NDArray[np.float64]
Grid = NDArray[np.float32]


@dataclass
class Series:
    """Sums of one target: by measure an array of rows by spans; ``total`` is with everything that was called."""

    own: dict[str, Grid] = field(default_factory=dict)
    total: dict[str, Grid] = field(default_factory=dict)


class Sink:
    """Where rows go. ``places`` are nodes of the call tree and, behind them, labels."""

    def __init__(
        self, spans: tuple[Ids, Ids], places: int, bins: int, targets: Mapping[str, Target], flame: Groups
    ) -> None:
        """``spans`` are those of the call tree."""
        self._spans = spans
        self._nodes = len(spans[0])
        self._places = places
        self._bins = bins
        self._targets = targets
        self._flame = flame
        self._series = {name: Series() for name in (*targets, "flame")}
        self._number = 0
        self._sums: dict[str, Values] = {}

    def series(self) -> dict[str, Series]:
        """The sums of everything that was added."""
        self._flush()
        return self._series

    def add(self, bins: NDArray[np.int64], place: NDArray[np.int64], weights: Mapping[str, Values]) -> None:
        """Adds rows: their span, their place, and their weight for some of ``MEASURES``."""
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
                sums = np.asarray(np.bincount(place[part], values[part], self._places), np.float64)
                self._sums[name] = self._sums[name] + sums if name in self._sums else sums

    def _flush(self) -> None:
        """Puts the sums of a span where they belong; rows of a span are often not all in one batch."""
        number = self._number
        sums = {name: values for name, values in self._sums.items() if values.any()}
        self._sums = {}
        if not sums:
            return
        own = np.stack(list(sums.values()))
        totals = self._totals(sums)
        below = with_below(np.stack(list(totals.values())), self._spans) if totals else None
        _put(self._series["flame"].own, sums, self._flame.sums(own), number, self._bins)
        for name, target in self._targets.items():
            _put(self._series[name].own, sums, target.own.sums(own), number, self._bins)
            if below is not None:
                _put(self._series[name].total, totals, target.total.sums(below), number, self._bins)

    def _totals(self, sums: Mapping[str, Values]) -> dict[str, Values]:
        cpu = [sums[name] for name in CPU if name in sums]
        totals = {"cpu": np.sum(cpu, axis=0)} if cpu else {}
        totals.update({name: sums[name] for name in TOTALS if name in sums})
        return {name: values[: self._nodes] for name, values in totals.items()}


def _put(into: dict[str, Grid], names: Mapping[str, Values], values: Values, number: int, bins: int) -> None:
    for name, row in zip(names, values, strict=True):
        if name not in into:
            into[name] = np.zeros((len(row), bins), np.float32)
        into[name][:, number] += row
