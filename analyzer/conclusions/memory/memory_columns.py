"""The columns about memory in the frames of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recording.frame import Column, WholeNumbers
from ...samples.sites import NodeSums
from ...samples.summary import Columns, Placement
from ...statistics.intervals import Z95, none_seen, poisson_sums, shared_out
from .curves import Events, envelope, events, live_curves
from .heap import Heap
from .sums import Averages, HeapSums

MB = 1e6

_BOUNDED = ("allocated", "freed", "net", "peak", "live_at_peak", "live_at_resident_peak", "live_at_end")
_TOTALS = ("allocated", "freed", "net", "live_at_peak", "live_at_resident_peak", "live_at_end")
INTERVALS = tuple(f"{name}_bytes{end}" for name in _BOUNDED for end in ("", "_low", "_high"))
OTHERS = (
    "requested_bytes",
    "requested_at_peak_bytes",
    "touched_at_peak_bytes",
    "average_bytes",
    "python_fraction",
    "allocation_mb_per_s",
    "allocation_samples",
)
TOTALS = tuple(f"total_{name}_bytes{end}" for name in _TOTALS for end in ("", "_low", "_high"))
COLUMNS = (*INTERVALS, *OTHERS, *TOTALS)
"""The numbers; ``timeline`` is a column of curves."""

MIN_TIMELINE = 0.001
"""Rows that never held this part of the highest footprint get no curve."""

ROUNDING = 1e-9
"""Sums of floating-point numbers that should be equal are at least this equal."""

MAX_TIMELINES = 200
"""Curves in one frame."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeapColumns:
    """Makes the memory columns: from the sums (``names`` are the summary's measures), and peaks from the blocks."""

    names: tuple[str, ...]
    heap: Heap | None
    sums: HeapSums | None
    selected: NDArray[np.bool_] | None
    """The threads of the question; None: all."""
    wall_s: float | None
    averages: Averages | None
    timelines: bool = True
    """True to make the column ``timeline``, which takes longest."""

    @cached_property
    def _events(self) -> Events:
        """Births and deaths of the blocks of the selected threads."""
        assert self.heap is not None
        return events(
            self.heap.held,
            self.heap.of_threads(self.selected),
            len(self.heap.sites),
            self.heap.start_ns,
            self.heap.end_ns + 1,
        )

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> Columns:
        """The columns, NaN where memory was not recorded."""
        if self.heap is None or self.sums is None:
            nothing = np.full(placement.rows, np.nan)
            more: dict[str, Column] = {
                "allocation_samples": WholeNumbers.of_floats(nothing),
                "timeline": np.full(placement.rows, None, object),
            }
            return dict[str, Column].fromkeys(COLUMNS, nothing) | more
        values = {name: own[:, self.names.index(name)] for name in self.sums.sites.names}
        totals = {name: total[:, self.names.index(name)] for name in self.sums.sites.names}
        columns = _bounded(values, self.sums)
        columns.update(self._peaks(placement, values, self.heap))
        columns.update({name: values[name] for name in ("requested_bytes", "requested_at_peak_bytes")})
        columns["touched_at_peak_bytes"] = np.maximum(
            0.0, values["live_at_peak_bytes"] - values["untouched_at_peak_bytes"]
        )
        averages = self.averages.by_row(placement) if self.averages is not None else np.full(placement.rows, np.nan)
        # A row of the counters is charged as a whole, also with up to a threshold of what other lines have allocated
        # since the row before: no line holds more than the most that it ever held.
        peaks = columns["peak_bytes"]
        columns["average_bytes"] = np.where((peaks > 0) & (averages > peaks), peaks, averages)
        with np.errstate(divide="ignore", invalid="ignore"):
            columns["python_fraction"] = values["python_allocated_bytes"] / values["allocated_bytes"]
        columns["allocation_mb_per_s"] = per_second(values["allocated_bytes"], self.wall_s)
        columns["allocation_samples"] = WholeNumbers.of_floats(values["allocation_samples"])
        columns |= {f"total_{name}": column for name, column in _bounded(totals, self.sums).items()}
        return {name: columns[name] for name in (*COLUMNS, "timeline")}

    def _peaks(self, placement: Placement, values: dict[str, _Floats], heap: Heap) -> dict[str, Any]:
        """The most that each row held, and its curve."""
        site_row = site_rows(placement, self.sums.sites if self.sums else None)
        curves = live_curves(self._events, site_row, placement.rows).below(
            *envelope(heap.counters, heap.lifetimes.start_ns, heap.gone_ns)
        )
        peaks, variance = curves.peaks()
        low, high = poisson_sums(np.zeros(placement.rows), peaks, variance)
        # What is held at one moment is held at its own peak too; it may have been adjusted to the counters.
        least = np.fmax(values["live_at_peak_bytes"], values["live_at_resident_peak_bytes"])
        if len(heap.counted) == 1:  # several processes have ends of their own, which are no one moment
            least = np.maximum(least, values["live_at_end_bytes"])
        peaks = np.maximum(peaks, least)
        whole = heap.peak.bytes if not np.isnan(heap.peak.bytes) else float(peaks.max(initial=0.0))
        highest = np.argsort(-peaks, kind="stable")[: MAX_TIMELINES if self.timelines else 0]
        timeline: NDArray[Any] = np.full(placement.rows, None, object)
        for index in highest.tolist():
            if curves.first[index] < curves.first[index + 1] and peaks[index] >= MIN_TIMELINE * whole:
                timeline[index] = curves.curve(index, heap.start_ns, heap.end_ns, heap.zero_ns)
        return {
            "peak_bytes": peaks,
            "peak_bytes_low": np.minimum(low, peaks),
            "peak_bytes_high": np.maximum(high, peaks),
            "timeline": timeline,
        }


def site_rows(placement: Placement, sums: NodeSums | None) -> NDArray[np.int64]:
    """The row of a frame that each site belongs to."""
    labels = [] if sums is None else [placement.label_rows[label] for label in sums.labels]
    return np.concatenate((placement.node_rows, np.array(labels, np.int64)))


def per_second(size: _Floats, wall_s: float | None) -> _Floats:
    """Megabytes per second of the window; NaN if its length is not known."""
    return size / MB / wall_s if wall_s else np.full(len(size), np.nan)


def _bounded(values: dict[str, _Floats], sums: HeapSums) -> dict[str, Any]:
    """The estimates with the ends of their 95 % intervals."""
    columns: dict[str, Any] = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = values["allocated_variance"] / values["allocated_beyond"]
    most = np.full(len(weight), np.inf)
    for name in ("allocated", "freed", "live_at_peak", "live_at_resident_peak", "live_at_end"):
        estimate, beyond = values[f"{name}_bytes"], values[f"{name}_beyond"]
        anchored = sums.anchored.get(name)
        low, high = poisson_sums(estimate - beyond, beyond, _variance(name, values, sums))
        # None of the sampled blocks was released, or held: of those that were not sampled, some may have been.
        unseen = (beyond <= 0) & (weight > 0)
        high = np.where(unseen, np.minimum(estimate + none_seen(weight), most), high)
        if anchored is not None:
            high = np.minimum(high, estimate - beyond + np.maximum(anchored[0], beyond))
        columns[f"{name}_bytes"] = estimate
        columns[f"{name}_bytes_low"] = low
        columns[f"{name}_bytes_high"] = high
        if name == "allocated":
            most = high
    net = _net(values)
    reach = Z95 * np.sqrt(values["net_variance"])
    columns |= {"net_bytes": net, "net_bytes_low": net - reach, "net_bytes_high": net + reach}
    return columns


def _net(values: dict[str, _Floats]) -> _Floats:
    """Allocated less released bytes; differences by rounding alone count as 0."""
    net = values["allocated_bytes"] - values["freed_bytes"]
    return np.where(np.abs(net) < ROUNDING * values["allocated_bytes"], 0.0, net)


def _variance(name: str, values: dict[str, _Floats], sums: HeapSums) -> _Floats:
    """The variances of an estimate by row, given that the sums of all rows are known."""
    variance = values[f"{name}_variance"]
    if name not in sums.anchored:
        return variance
    whole = sums.anchored[name][1]
    with np.errstate(divide="ignore", invalid="ignore"):
        sample = np.where(variance > 0, np.square(variance / values[f"{name}_beyond"]), 0.0)
    if name != "allocated":
        return shared_out(variance, whole, sample)
    kept, kept_whole = values["allocated_kept_variance"], sums.anchored["allocated_kept"][1]
    return shared_out(kept, kept_whole, sample) + shared_out(variance - kept, whole - kept_whole, sample)
