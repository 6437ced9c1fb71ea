"""GPU columns of the frames, joined by time: how busy the GPU was while a thread was at each node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct

from ...samples.attribution import STATES
from ...samples.sites import NodeSums, state_label
from ...samples.stream import CpuBatch, Stream, WaitBatch
from ...samples.summary import Columns, Placement
from .readings import Floats, Ids, Readings

MEASURES = ("gpu_ns", "gpu_known_ns", "gpu_byte_ns", "gpu_byte_known_ns")
"""Nanoseconds that the GPU was busy, and of which that is known; byte-nanoseconds of its memory, likewise."""


@dataclass(frozen=True)
class GpuSums:
    """The measures by place, and the most memory that was in use in each (nodes, then labels)."""

    sums: NodeSums
    peak_bytes: Floats


class GpuJoin:
    """The sink for the activity of GPUs while ``threads`` (a mask) of their processes were in each place.

    CPU samples stand for the time before them; waits are those of every kind.
    """

    times = True

    def __init__(self, stream: Stream, readings: Readings, threads: NDArray[np.bool_]) -> None:
        self._window = stream.window
        self._threads = threads
        self._nodes = stream.nodes
        self._owner = stream.recording.all_threads.process
        processes = sorted(set(self._owner[threads].tolist()))
        self._series = {process: (readings.busy(process), readings.held(process)) for process in processes}
        self._sums = np.zeros((stream.nodes + STATES, len(MEASURES)))
        self._peak = np.full(stream.nodes + STATES, np.nan)

    def cpu(self, batch: CpuBatch) -> None:
        """Takes some CPU samples."""
        mine = self._threads[batch.thread]
        weight, end = batch.elapsed_ns[mine], batch.time_ns[mine]
        self._add(batch.place[mine], batch.thread[mine], end - weight.astype(np.int64), end, weight)

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits."""
        mine = batch.only(self._threads[batch.thread])
        start, end = mine.start_ns, mine.end_ns
        if self._window.spans is None:
            start, end = np.maximum(start, self._window.start_ns), np.minimum(end, self._window.end_ns)
        self._add(mine.place, mine.thread, start, end, mine.weight_ns)

    def sums(self) -> GpuSums:
        """The sums so far."""
        names = [state_label(number) for number in range(STATES)]
        return GpuSums(NodeSums(MEASURES, self._sums[: self._nodes], names, self._sums[self._nodes :]), self._peak)

    def _add(self, place: Ids, thread: NDArray[np.integer], start_ns: Ids, end_ns: Ids, weight: Floats) -> None:
        process = self._owner[thread]
        for number in distinct(process).tolist():
            mine = process == number
            self._add_process(number, place[mine], start_ns[mine], end_ns[mine], weight[mine])

    def _add_process(self, process: int, place: Ids, start: Ids, end: Ids, weight: Floats) -> None:
        busy, held = self._series[process]
        # Of a span in which the thread ran and waited in turn, a part is the row's.
        part = weight / np.maximum(end - start, 1)
        busy_ns, known_ns = busy.between(start, end)
        held_bytes = held.at(end)
        measured = ~np.isnan(held_bytes)
        columns = (busy_ns * part, known_ns * part, np.where(measured, held_bytes, 0.0) * weight, weight * measured)
        for column, values in enumerate(columns):
            self._sums[:, column] += np.bincount(place, values, len(self._sums))
        np.fmax.at(self._peak, place, held.most(start, end))


COLUMNS = ("gpu_s", "gpu_share", "gpu_memory_bytes", "gpu_peak_bytes", "total_gpu_s", "total_gpu_share")

LEAST_KNOWN_NS = 1_000_000
"""Least time for a GPU figure: the driver's samples are a hundred times as long."""


@dataclass(frozen=True)
class GpuColumns:
    """Makes the columns from the measures ``names`` of a summary; NaN where GPUs were not read."""

    names: tuple[str, ...]
    gpu: GpuSums | None

    def columns(self, placement: Placement, own: Floats, total: Floats) -> Columns:
        """The columns, for every row of a frame."""
        if self.gpu is None:
            return dict.fromkeys(COLUMNS, np.full(placement.rows, np.nan))
        seconds, share = self._busy(own)
        total_seconds, total_share = self._busy(total)
        bytes_, covered = self._of(own, "gpu_byte_ns"), self._of(own, "gpu_byte_known_ns")
        values = (seconds, share, _ratio(bytes_, covered, 0.0), self._peaks(placement), total_seconds, total_share)
        return dict(zip(COLUMNS, values, strict=True))

    def _of(self, values: Floats, name: str) -> Floats:
        return values[:, self.names.index(name)]

    def _busy(self, values: Floats) -> tuple[Floats, Floats]:
        busy, covered = self._of(values, "gpu_ns"), self._of(values, "gpu_known_ns")
        return np.where(covered > 0, busy / 1e9, np.nan), _ratio(busy, covered, LEAST_KNOWN_NS)

    def _peaks(self, placement: Placement) -> Floats:
        assert self.gpu is not None
        labels = [placement.label_rows[label] for label in self.gpu.sums.labels]
        rows = np.concatenate((placement.node_rows, np.array(labels, np.int64)))
        peaks = np.full(placement.rows, np.nan)
        np.fmax.at(peaks, rows, self.gpu.peak_bytes)
        return peaks


def _ratio(part: Floats, whole: Floats, least: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > least, np.clip(part / whole, 0.0, None), np.nan)
