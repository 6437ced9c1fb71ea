"""Pages that forked processes copied, by the line that touched them.

How many there are is known of each process (``where``). The table ``page_faults`` says where its threads touched pages.
What a thread touched between two CPU samples at different places is divided between the two
(:func:`before_the_change`). What of it all were fresh pages, of large blocks that had just been allocated, is left out
(:func:`copied_pages`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields

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

_APART = 0.5
"""Rates of touching pages tell two places apart if they differ by this part of the larger one."""

_Floats = NDArray[np.float64]
_Ids = NDArray[np.int64]


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
    mine = np.isin(owners, list(copied))
    faults = _read(recording, heap, "page_faults", "faults", mine)
    samples = _read(recording, heap, "cpu", "cpu_ns", mine)
    touched = _divided(faults, samples)
    owner = owners[faults.thread]
    inside = (faults.time_ns >= heap.start_ns) & (faults.time_ns <= heap.end_ns)
    total = np.zeros(len(sites))
    for process, size in copied.items():
        its = np.flatnonzero(owner == process)
        before, here = copied_pages(touched.rows(its), _large_blocks(heap, process), size)
        its_inside = inside[its]
        shared = summed(touched.earlier_site[its][its_inside], before[its_inside], len(sites))
        shared += summed(faults.site[its][its_inside], here[its_inside], len(sites))
        if shared.sum() > 0:
            total += shared * (size / shared.sum())
    measures = total[:, None]
    return NodeSums((MEASURE,), measures[: sites.nodes], list(sites.labels), measures[sites.nodes :])


@dataclass(frozen=True)
class _Rows:
    """Facts of threads at times: where, and how much."""

    thread: _Ids
    time_ns: _Ids
    site: _Ids
    amount: _Floats


def _read(recording: Recording, heap: Heap, table: str, amount: str, threads: NDArray[np.bool_]) -> _Rows:
    """The rows of a table that are of one of the ``threads``, in the order of time."""
    parts: list[tuple[_Ids, _Ids, _Ids, _Floats]] = []
    for batch in recording.batches(table, ("time_ns", "thread", amount, "stack", "stack_state")):
        thread, time_ns = (numbers(batch.column(name)).astype(np.int64) for name in ("thread", "time_ns"))
        mine = np.flatnonzero(threads[thread])
        stack, state = ids(batch.column("stack"))[mine], numbers(batch.column("stack_state"))[mine]
        thread, time_ns, none = thread[mine], time_ns[mine], np.full(len(mine), -1, np.int64)
        site = heap.sites.number(stack, state, none, thread, time_ns)
        parts.append((thread, time_ns, site, numbers(batch.column(amount)).astype(np.float64)[mine]))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] or [np.zeros(0, np.int64)] * 4
    return _Rows(columns[0], columns[1], columns[2], columns[3].astype(np.float64))


@dataclass(frozen=True)
class Touched:
    """Pages that threads touched since their CPU sample before, in the order of time; in bytes.

    ``before`` are those touched at the place of that sample, ``here`` those touched at the place of the row.
    """

    begin_ns: _Ids
    end_ns: _Ids
    before: _Floats
    here: _Floats
    earlier_site: _Ids

    def rows(self, which: _Ids) -> Touched:
        """Some of the rows."""
        return Touched(*(getattr(self, each.name)[which] for each in fields(self)))


def _divided(faults: _Rows, samples: _Rows) -> Touched:
    count = len(faults.time_ns)
    begin_ns, moved, earlier = faults.time_ns.copy(), np.zeros(count), faults.site.copy()
    for thread in np.unique(faults.thread):
        rows, its = np.flatnonzero(faults.thread == thread), np.flatnonzero(samples.thread == thread)
        at = np.searchsorted(samples.time_ns[its], faults.time_ns[rows], side="right") - 1
        rows, at = rows[at >= 0], at[at >= 0]
        touched = summed(at, faults.amount[rows], len(its))
        before = before_the_change(touched, samples.amount[its], samples.site[its])
        part = np.divide(before[at], touched[at], out=np.zeros(len(at)), where=touched[at] > 0)
        moved[rows] = faults.amount[rows] * part
        begin_ns[rows] = np.where(at > 0, samples.time_ns[its][at - 1], 0)
        earlier[rows] = samples.site[its][np.maximum(at - 1, 0)]
    return Touched(begin_ns, faults.time_ns, moved * PAGE, (faults.amount - moved) * PAGE, earlier)


def before_the_change(touched: _Floats, cpu_ns: _Floats, site: _Ids) -> _Floats:
    """The part of the pages of each of a thread's CPU samples that was touched at the place of the sample before.

    A sample stands for the time since the one before it. Where the two are at different places, the first is taken to
    have gone on at the rate of its own sample, and the second to have begun at that of the sample after it: what was
    touched in between says when the one went over to the other. Where the rates are too much alike to say, or there is
    no later sample, it is in the middle.
    """
    changes = np.flatnonzero(site[1:] != site[:-1]) + 1
    rate = touched / np.maximum(cpu_ns, 1.0)
    earlier, now = rate[changes - 1], rate[changes]
    later = np.append(rate, np.nan)[changes + 1]
    apart = np.abs(earlier - later) > _APART * np.maximum(earlier, later)
    part = np.divide(now - later, earlier - later, out=np.full(len(changes), 0.5), where=apart)
    before = np.zeros(len(touched))
    before[changes] = np.minimum(touched[changes], np.clip(part, 0.0, 1.0) * earlier * cpu_ns[changes])
    return before


@dataclass(frozen=True)
class LargeBlocks:
    """Blocks of a process that lie in pages that nothing was in before, in the order of their birth."""

    birth_ns: _Ids
    death_ns: _Ids
    size: _Floats


def _large_blocks(heap: Heap, process: int) -> LargeBlocks:
    blocks = heap.blocks
    its = np.flatnonzero((blocks.process == process) & (blocks.certain >= _FRESH))
    return LargeBlocks(blocks.birth_ns[its], blocks.death_ns[its], blocks.bytes[its])


def copied_pages(touched: Touched, blocks: LargeBlocks, copied: float) -> tuple[_Floats, _Floats]:
    """The parts of ``before`` and of ``here`` that are not fresh.

    A process that touched more than it ``copied`` touched fresh pages: those of large blocks, soon after their birth,
    wherever that is. What was touched at the place of the first of two samples was mostly touched before the birth of a
    block between the two: it has those of its pages that are found nowhere else.
    """
    before, here = touched.before.copy(), touched.here.copy()
    fresh = _FreshPages(blocks, float(before.sum() + here.sum()) - copied)
    born_in: dict[int, int] = {}
    births = blocks.birth_ns.tolist()
    for row, (begin_ns, end_ns) in enumerate(zip(touched.begin_ns.tolist(), touched.end_ns.tolist(), strict=True)):
        if fresh.bytes <= 0 or (len(born_in) == len(births) and not fresh.waiting):
            break
        for until, parts in ((begin_ns, (before, here)), (end_ns, (here,))):
            while len(born_in) < len(births) and births[len(born_in)] <= until:
                fresh.waiting.append(len(born_in))
                born_in[len(born_in)] = row
            for part in parts:
                fresh.take(part, row, begin_ns)
    for block, row in born_in.items():
        fresh.take_for(block, before, row)
    return before, here


class _FreshPages:
    """Bytes of fresh pages that are not found yet: of a process, and of each large block."""

    def __init__(self, blocks: LargeBlocks, size: float) -> None:
        self.bytes = size
        self.waiting: deque[int] = deque()
        """Blocks that were born, the oldest first."""
        self._left, self._death_ns = blocks.size.tolist(), blocks.death_ns.tolist()

    def take(self, part: _Floats, row: int, now_ns: int) -> None:
        """Take what ``row`` has of pages of the blocks that wait."""
        while self.waiting and part[row] > 0 and self.bytes > 0:
            block = self.waiting[0]
            if self._death_ns[block] > now_ns:
                self.take_for(block, part, row)
            if self._death_ns[block] <= now_ns or self._left[block] <= 0:
                self.waiting.popleft()

    def take_for(self, block: int, part: _Floats, row: int) -> None:
        """Take what ``row`` has of pages of ``block``."""
        taken = max(0.0, min(self._left[block], float(part[row]), self.bytes))
        self._left[block] -= taken
        self.bytes -= taken
        part[row] -= taken


@dataclass(frozen=True)
class ForkCopyColumns:
    """Makes the column from the measures ``names`` of a summary; NaN where it is not among them."""

    names: tuple[str, ...]

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> Columns:
        """Bytes of pages that were copied there."""
        del total
        unknown = np.full(placement.rows, np.nan)
        return {COLUMN: own[:, self.names.index(MEASURE)] if MEASURE in self.names else unknown}
