"""The named spans of a recording over time, from which a report fills its table of spans for any window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..profile.build import ResolvedQuestion
from ..profile.held_memory import Held
from ..profile.span_sums import NO_SPAN, TimeRangeSums
from ..recording.text import printable
from .series import CPU, Bins

MAX_NAMES = 200
"""Names that are shown at most."""

MEASURES = {
    "cpu_s": "cpu",
    "wait_s": "wait",
    "allocated_bytes": "allocated",
    "live_at_end_bytes": "kept",
    "copied_bytes": "copied",
}
"""Columns of ``Profile.spans`` and what they are called here."""

WHOLE = (
    "total_await_s",
    "p50_s",
    "p95_s",
    "p99_s",
    "each_cpu_s",
    "each_allocated_bytes",
    "each_live_at_end_bytes",
)
"""Columns of ``Profile.spans`` that are shown of the whole time, whatever window is chosen."""

Grid = NDArray[np.float64]


@dataclass(frozen=True)
class SpanPart:
    """Sums by name (with the spans within), the last row being what was in no span; nanoseconds and bytes."""

    names: list[str]
    counts: list[int | None]
    """The number of spans in the whole time; None for the row of time outside of spans."""
    grids: dict[str, Grid]
    """Rows by spans of time; ``lasted`` is how long they were open. Measures that are not known are not there.

    Of what was in no span the last row has neither ``lasted`` nor ``kept``.
    """
    left_out: int
    whole: dict[str, list[float]]
    """Columns of ``WHOLE``, of the whole time; NaN where unknown."""


class SpansOverTime:
    """The named spans of a question divided into bins of time; ``sums`` is the sink that the stream must feed."""

    def __init__(self, resolved: ResolvedQuestion, bins: Bins) -> None:
        bounds = np.ceil(bins.start_ns + np.arange(bins.count + 1) * bins.width_ns).astype(np.int64)
        own, total = (each.cut(int(bounds[0]), int(bounds[-1])).divided(bounds) for each in resolved.ranges)
        self._names = resolved.spans.names
        self._bins = bins
        self.sums = TimeRangeSums(resolved.stream, (own, total), len(self._names) * bins.count, resolved.tracks)

    def part(self, spans: pd.DataFrame, held: Held, overall: Mapping[str, Grid]) -> SpanPart:
        """Divides what ``Profile.spans`` sums up; ``overall`` has by measure of ``series.MEASURES`` the sums of all."""
        bins, total = self._bins, self.sums.of_threads()
        # Names that look the same when they are printed are one here.
        count_of = spans.iloc[:-1].groupby("name", sort=False)["count"].sum()
        names = count_of.index.tolist()[:MAX_NAMES]
        row_of = {name: row for row, name in enumerate(names)}
        row = np.array([row_of.get(printable(name, 500), len(names)) for name in self._names], np.int64)

        def by_row(values: Grid) -> Grid:
            grid = np.zeros((len(names) + 1, bins.count))
            np.add.at(grid, row, values.reshape(-1, bins.count))
            return grid

        lengths = np.bincount(total.group, (total.end_ns - total.start_ns).astype(np.float64), self.sums.groups)
        grids = {"lasted": by_row(lengths.astype(np.float64))}
        grids["lasted"][-1] = 0
        for column, (by_own, by_total, _) in self.sums.sums(held).items():
            if np.isnan(by_total).any():
                continue
            grid = by_row(by_total)
            # What was in no span: everything, but for what was in one.
            parts = [overall[name] for name in (CPU if column == "cpu_s" else (MEASURES[column],)) if name in overall]
            everything = np.sum(parts, axis=0) if parts else np.zeros(bins.count)
            grid[-1] = np.maximum(everything - by_own.reshape(-1, bins.count).sum(axis=0), 0.0)
            grids[MEASURES[column]] = grid
        counts = [int(count) for count in count_of.tolist()[:MAX_NAMES]]
        by_name = spans.drop_duplicates("name").set_index("name").reindex([*names, NO_SPAN])
        whole = {column: by_name[column].astype(float).tolist() for column in WHOLE if by_name[column].notna().any()}
        return SpanPart([*names, NO_SPAN], [*counts, None], grids, len(count_of) - len(names), whole)
