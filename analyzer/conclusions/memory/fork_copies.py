"""Pages that forked processes copied, by the line that touched them.

How many there are is known of each process (``where``). The table ``page_faults`` says where its threads touched pages;
what of these were fresh ones, for large blocks allocated at the same place, is left out of the division.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids, numbers

from ...recording.opened import Recording
from ...samples.sites import NodeSums
from ...samples.summary import Columns, Placement
from ...statistics.grouped_sums import summed
from .heap import PAGE, Heap
from .where import Where

COLUMN = MEASURE = "copied_after_fork_bytes"
COLUMNS = (COLUMN,)

_FRESH = 128 << 10
"""Blocks of this size on are in pages that nothing was in before."""

_Floats = NDArray[np.float64]


def sum_fork_copies(recording: Recording, heap: Heap, where: Where | None) -> NodeSums | None:
    """Copied bytes by node of the call tree or label; None where they are not known, or no process was forked."""
    copied = {
        process: division.copied_after_fork_bytes
        for process, _, division in (() if where is None else where.processes)
        if division.copied_after_fork_bytes is not None
    }
    if not copied or not recording.recorded("page_faults"):
        return None
    sites, owners = heap.sites, recording.all_threads.process
    touched: dict[int, _Floats] = {}
    for batch in recording.batches("page_faults", ("time_ns", "thread", "faults", "stack", "stack_state")):
        thread, time_ns = numbers(batch.column("thread")).astype(np.int64), numbers(batch.column("time_ns"))
        stack, none = ids(batch.column("stack")), np.full(batch.num_rows, -1, np.int64)
        site = sites.number(stack, numbers(batch.column("stack_state")), none, thread, time_ns)
        faults = numbers(batch.column("faults")).astype(np.float64) * PAGE
        inside = (time_ns >= heap.start_ns) & (time_ns <= heap.end_ns)
        for process in copied:
            mine = inside & (owners[thread] == process)
            before = touched.get(process, np.zeros(0))
            more = summed(site[mine], faults[mine], len(sites))
            more[: len(before)] += before
            touched[process] = more
    total = np.zeros(len(sites))
    for process, size in copied.items():
        pages = touched.get(process, np.zeros(0))
        pages = np.maximum(0.0, pages - _fresh(heap, process, len(pages)))
        if pages.sum() > 0:
            total[: len(pages)] += pages * (size / pages.sum())
    measures = total[:, None]
    return NodeSums((MEASURE,), measures[: sites.nodes], list(sites.labels), measures[sites.nodes :])


def _fresh(heap: Heap, process: int, count: int) -> _Floats:
    """Bytes of large blocks that a process allocated, by site."""
    blocks = heap.blocks
    mine = (blocks.process == process) & heap.allocated_in_window() & (blocks.certain >= _FRESH) & (blocks.site < count)
    return summed(blocks.site[mine], blocks.bytes[mine], count)


@dataclass(frozen=True)
class ForkCopyColumns:
    """Makes the column from the measures ``names`` of a summary; NaN where it is not among them."""

    names: tuple[str, ...]

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> Columns:
        """Bytes of pages that were copied there."""
        del total
        unknown = np.full(placement.rows, np.nan)
        return {COLUMN: own[:, self.names.index(MEASURE)] if MEASURE in self.names else unknown}
