"""What each sampled block counts for in a measure of the heap, so that the blocks of a site add up to its sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...samples.accumulate import summed
from ...samples.nodes import NodeSums
from .blocks import Blocks
from .heap import Heap

DIVIDED = ("allocated_bytes", "live_at_peak_bytes", "live_at_resident_peak_bytes", "live_at_end_bytes")
"""The measures of ``sums.MEASURES`` that blocks have a share of."""


@dataclass(frozen=True)
class Shares:
    """The blocks that count for a measure, what each counts for, and what is left of sites without such blocks."""

    blocks: NDArray[np.intp]
    """Their numbers in ``Heap.blocks``."""
    bytes: NDArray[np.float64]
    rest: NDArray[np.float64]
    """By site."""


def shares(heap: Heap, sums: NodeSums, measure: str, wanted: NDArray[np.bool_] | None = None) -> Shares:
    """Divides a measure of ``sum_up``'s ``sums``, which are of the threads of ``wanted`` (None: all)."""
    counted, mask = _counted(heap, measure)
    column = sums.column(measure)
    whole = np.nan_to_num(np.concatenate([sums.nodes[:, column], sums.stackless[:, column]]))
    mine = np.flatnonzero(mask & heap.of_threads(wanted))
    site, size = counted.site[mine], counted.bytes[mine]
    seen = summed(site, size, len(whole))
    factor = np.divide(whole, seen, out=np.zeros_like(whole), where=seen > 0)
    return Shares(mine, size * factor[site], np.where(seen > 0, 0.0, whole))


def _counted(heap: Heap, measure: str) -> tuple[Blocks, NDArray[np.bool_]]:
    """The blocks as they count for a measure, and which of them do."""
    if measure == "allocated_bytes":
        return heap.blocks, heap.allocated_in_window()
    if measure == "live_at_end_bytes":
        return heap.blocks, heap.alive_at_end()
    moment = heap.peak if measure == "live_at_peak_bytes" else heap.resident_peak
    return heap.held, heap.held.alive(moment.time_ns)
