"""CPU time and waiting by named span and node of the call tree: what a fleet keeps of each span's lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..recording.time_ranges import TimeRanges
from ..samples.accumulate import summed
from ..samples.stream import CpuBatch, WaitBatch

_Ids = NDArray[np.int64]
_Floats = NDArray[np.float64]


class SpanNodes:
    """The sink that adds up by the innermost span and the node. Of waits, those of main threads, but not for a CPU.

    A wait is shared out by how long it lay in each span, as in the report of one recording: waits on one line that
    follow one another closely are one row, which lasts over many spans. ``own`` are the ranges of spans without those
    within them.
    """

    times = True

    def __init__(self, own: TimeRanges, main: NDArray[np.bool_], nodes: int) -> None:
        self._own, self._main, self._nodes = own, main, nodes
        self._parts: list[tuple[_Ids, int, _Floats]] = []

    def cpu(self, batch: CpuBatch) -> None:
        """Takes some CPU samples."""
        self._take(0, self._own.group_at(batch.thread, batch.time_ns), batch.stack, batch.weight_ns)

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits."""
        mine = batch.for_the_world()
        mine = mine.only(self._main[mine.thread])
        row, span, part = self._own.overlaps(mine.thread, mine.start_ns, mine.end_ns)
        self._take(1, span, mine.stack[row], mine.weight_ns[row] * part)

    def sums(self) -> tuple[_Ids, _Ids, _Floats]:
        """Numbers of spans, nodes, and the seconds of CPU time and waiting of each pair that has any."""
        if not self._parts:
            nothing = np.zeros(0, np.int64)
            return nothing, nothing, np.zeros((0, 2))
        keys, place = np.unique(np.concatenate([part[0] for part in self._parts]), return_inverse=True)
        sums = np.zeros((len(keys), 2))
        start = 0
        for part, column, weight in self._parts:
            sums[:, column] += np.bincount(place[start : start + len(part)], weight, len(keys))
            start += len(part)
        return keys // self._nodes, keys % self._nodes, sums / 1e9

    def _take(self, column: int, span: _Ids, stack: NDArray[np.integer], weight: _Floats) -> None:
        known = (span >= 0) & (stack < self._nodes)
        if known.any():
            key, place = np.unique(span[known] * self._nodes + stack[known], return_inverse=True)
            self._parts.append((key, column, summed(place, weight[known], len(key))))
