"""The memory side of a profile: heap, copies and leaks of one question, put together for the frames.

``held_paths`` gives memory and copies by call path through Python and native code: the callers of the allocator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from ..conclusions.copies import Copies, CopyColumns, read_copies, sum_copies
from ..conclusions.leaks import LeakColumns, LeakDefinition, Leaks, find_leaks
from ..conclusions.memory import Heap, read_heap
from ..conclusions.memory.fork_copies import ForkCopyColumns, sum_fork_copies
from ..conclusions.memory.memory_columns import MB, HeapColumns
from ..conclusions.memory.process import Memory, describe_memory
from ..conclusions.memory.referrers import find_referrers
from ..conclusions.memory.sums import DIVIDED, HeapSums, averages, exact_allocated, exact_freed, shares, sum_up
from ..conclusions.memory.verdicts import find_verdicts
from ..conclusions.memory.where import Where, find_where
from ..recording.call_tree import NOTHING, CallTree
from ..recording.filter import Filter
from ..recording.frame import Frame
from ..recording.opened import Recording
from ..recording.process_lifetimes import InterpreterPhases
from ..recording.sources import Sources
from ..recording.time_window import Window
from ..samples.call_paths import CallPaths
from ..samples.sites import Askers, NodeSums, Sites
from ..samples.summary import MoreColumns, Placement
from ..statistics.grouped_sums import summed

THREAD_COLUMNS = (
    "allocated_bytes",
    "freed_bytes",
    "live_at_peak_bytes",
    "live_at_resident_peak_bytes",
    "live_at_end_bytes",
    "copied_bytes",
)
"""Columns of the frame of threads; NaN where they were not recorded."""


class HeldTotals(TypedDict, total=False):
    """The fields of ``Totals`` about memory and copies, as far as they were recorded."""

    allocated_bytes: float | None
    freed_bytes: float | None
    net_bytes: float | None
    requested_bytes: float | None
    live_at_peak_bytes: float | None
    touched_at_peak_bytes: float | None
    live_at_resident_peak_bytes: float | None
    live_at_end_bytes: float | None
    resident_peak_bytes: float | None
    python_fraction: float | None
    allocation_mb_per_s: float | None
    allocation_samples: int | None
    copied_bytes: float | None
    copy_mb_per_s: float | None
    copy_samples: int | None


@dataclass(frozen=True)
class Held:
    """Memory and copies of a recording, for the threads and the window of a question."""

    heap: Heap | None
    heap_sums: HeapSums | None
    copy_sums: NodeSums | None
    copied_by_thread: NDArray[np.float64] | None
    filter: Filter
    wall_s: float | None
    copies: Copies | None
    sites: Sites
    """The sites of ``copies``."""
    where: Where | None = None
    """The division of what is resident; None where it was not recorded."""
    fork_copies: NodeSums | None = None
    """Pages that forked processes copied; None where none is known."""

    @property
    def sums(self) -> list[NodeSums]:
        """The measures by node and label, as far as they were recorded."""
        measured = [self.heap_sums.sites if self.heap_sums else None, self.copy_sums, self.fork_copies]
        return [each for each in measured if each is not None]

    def threads(self, count: int) -> dict[str, NDArray[np.float64]]:
        """The columns of the frame of threads."""
        by_thread = dict(self.heap_sums.threads) if self.heap_sums else {}
        if self.copied_by_thread is not None:
            by_thread["copied_bytes"] = self.copied_by_thread
        nothing = np.full(count, np.nan)
        return {name: by_thread.get(name, nothing) for name in THREAD_COLUMNS}

    def totals(self) -> HeldTotals:
        """Memory and copies for ``Totals``."""
        totals = HeldTotals()
        if self.heap is not None and self.heap_sums is not None:
            totals = _heap_totals(self.heap, self.heap_sums.sites, everything=self.filter.named is None)
            totals["allocation_mb_per_s"] = self._per_second(totals["allocated_bytes"])
        if self.copy_sums is not None:
            copied = self.copy_sums.total("copied_bytes")
            totals["copied_bytes"], totals["copy_mb_per_s"] = copied, self._per_second(copied)
            totals["copy_samples"] = round(self.copy_sums.total("copy_samples"))
        return totals

    def _per_second(self, size: float | None) -> float | None:
        return size / MB / self.wall_s if self.wall_s and size is not None else None

    def leaks(
        self,
        recording: Recording,
        tree: CallTree,
        in_scope: NDArray[np.bool_],
        lines: tuple[Placement, Frame],
        sources: Sources,
        definition: LeakDefinition,
    ) -> Leaks | None:
        """The leaks, None if memory was not recorded; ``lines`` is the placement of the frame of lines."""
        if self.heap is None or self.heap_sums is None:
            return None
        placement, labels = lines
        return find_leaks(
            recording,
            self.heap,
            tree,
            in_scope,
            self.filter.named,
            placement,
            labels,
            self.heap_sums.sites,
            sources,
            definition,
        )

    def columns(
        self,
        names: tuple[str, ...],
        tree: CallTree,
        in_scope: NDArray[np.bool_],
        leaks: Leaks | None,
        *,
        brief: bool = False,
    ) -> Sequence[MoreColumns]:
        """Makers of the memory columns in the frames of a summary whose measures are ``names``.

        ``brief``: without timelines and averages.
        """
        with_averages = self.heap is not None and not brief
        visits = (
            averages(self.heap, tree, in_scope, self.filter.named) if with_averages and self.heap is not None else None
        )
        copied = self.copy_sums
        whole = None if copied is None else (copied.total("copied_beyond"), copied.total("copied_variance"))
        return (
            HeapColumns(names, self.heap, self.heap_sums, self.filter.named, self.wall_s, visits, timelines=not brief),
            CopyColumns(names, whole, self.wall_s),
            ForkCopyColumns(names),
            LeakColumns(leaks, self.heap_sums.sites if self.heap_sums else None),
        )

    def memory(
        self,
        recording: Recording,
        leaks: Leaks | None = None,
        lines: Frame | None = None,
        sources: Sources | None = None,
        placed: tuple[CallTree, NDArray[np.bool_]] | None = None,
    ) -> Memory | None:
        """The processes as wholes, None if memory was not recorded; judgements are about ``leaks`` and ``lines``.

        ``placed`` are the call tree and the mask of its nodes in scope; without it nothing is told of referrers.
        """
        if self.heap is None:
            return None
        where = self.where
        if where is not None and lines is not None and sources is not None:
            where = where.with_verdicts(find_verdicts(where, leaks, lines, sources))
        referrers = None
        if placed is not None:
            tree, in_scope = placed
            referrers = find_referrers(recording, self.heap, tree, tree.nearest(in_scope).tolist())
        return describe_memory(self.heap, recording.all_threads.per_process, where, referrers)


def read_held(
    recording: Recording,
    window: Window,
    selected: Filter,
    wall_s: float | None,
    phases: InterpreterPhases | None = None,
    askers: Askers | None = None,
    collecting: NDArray[np.bool_] | None = None,
) -> Held:
    """Reads memory and copies of the part of a recording that lies in ``window``, and sums them up.

    Only the selected processes are read. With a choice of threads, only their memory and copies count. ``phases`` are
    those of the recording, where they are known already. ``askers`` are the callers of native threads, and
    ``collecting`` is the mask of the nodes of the call tree that are garbage collections.
    """
    threads = len(recording.all_threads)
    sites = Sites(recording, phases, askers)
    heap = read_heap(recording, window, selected.processes, sites, collecting)
    heap_sums = sum_up(heap, threads, selected.named) if heap is not None else None
    copies = read_copies(recording, window, sites)
    copy_sums, by_thread = (None, None) if copies is None else sum_copies(copies, sites, selected.threads, threads)
    where = None if heap is None else find_where(recording, heap)
    fork_copies = None if heap is None or selected.named is not None else sum_fork_copies(recording, heap, where)
    return Held(heap, heap_sums, copy_sums, by_thread, selected, wall_s, copies, sites, where, fork_copies)


def _heap_totals(heap: Heap, sums: NodeSums, *, everything: bool) -> HeldTotals:
    allocated, freed = sums.total("allocated_bytes"), sums.total("freed_bytes")
    exact = (exact_allocated(heap), exact_freed(heap)) if everything else (None, None)
    allocated, freed = (
        exact_sum if exact_sum is not None else sum_ for exact_sum, sum_ in zip(exact, (allocated, freed), strict=True)
    )
    python = sums.total("python_allocated_bytes")
    return {
        "allocated_bytes": allocated,
        "freed_bytes": freed,
        "net_bytes": allocated - freed,
        "requested_bytes": sums.total("requested_bytes"),
        "live_at_peak_bytes": sums.total("live_at_peak_bytes"),
        "touched_at_peak_bytes": _known(sums.total("live_at_peak_bytes") - sums.total("untouched_at_peak_bytes")),
        "live_at_resident_peak_bytes": _known(sums.total("live_at_resident_peak_bytes")),
        "live_at_end_bytes": sums.total("live_at_end_bytes"),
        "resident_peak_bytes": _known(heap.resident_peak.bytes),
        "python_fraction": min(1.0, python / allocated) if allocated > 0 else None,
        "allocation_samples": round(sums.total("allocation_samples")),
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


_Ids = NDArray[np.int64]
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeldPaths:
    """Allocations and copies by call path, where they have Python stacks."""

    blocks: _Ids
    """By block of the heap its node of ``CallPaths``, NOTHING for those without a Python stack."""
    copies: _Ids
    """By row of the copies likewise. Both are empty where that was not recorded."""
    sums: dict[str, _Floats]
    """By measure that was recorded (those of ``DIVIDED`` and ``copied_bytes``) the bytes of each node itself.

    Nodes that came later have no entry. The sums are those of ``Held``, those of its labels aside.
    """

    @classmethod
    def none(cls) -> HeldPaths:
        """Empty paths."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), {})


def held_paths(held: Held, paths: CallPaths) -> HeldPaths:
    """Finds the paths; the tree of ``paths`` grows."""
    blocks, copies = np.zeros(0, np.int64), np.zeros(0, np.int64)
    sums: dict[str, _Floats] = {}
    if held.heap is not None and held.heap_sums is not None:
        heap, sites = held.heap, held.heap_sums.sites
        sampled = heap.blocks
        blocks = _nodes(
            paths, heap.sites.nodes, sampled.site, sampled.native_frame, sampled.native_stack, sampled.native_path
        )
        for measure in DIVIDED:
            if np.isnan(sites.total(measure)):
                continue
            measured = shares(heap, sites, measure, held.filter.named)
            rest = np.flatnonzero(measured.rest[: heap.sites.nodes])
            unseen = np.array([paths.of_stack(stack) for stack in rest.tolist()], np.int64)
            node = np.concatenate([blocks[measured.blocks], unseen])
            sums[measure] = _summed(node, np.concatenate([measured.bytes, measured.rest[rest]]), len(paths))
    if held.copies is not None:
        known_copies, threads = held.copies, held.filter.threads
        columns = (known_copies.native_frame, known_copies.native_stack, known_copies.native_path)
        copies = _nodes(paths, held.sites.nodes, known_copies.site, *columns)
        mine = known_copies.sampled if threads is None else known_copies.sampled & threads[known_copies.thread]
        sums["copied_bytes"] = _summed(copies[mine], known_copies.bytes[mine], len(paths))
    return HeldPaths(blocks, copies, sums)


def _nodes(
    paths: CallPaths,
    stacks: int,
    site: _Ids,
    native: NDArray[np.integer],
    native_stack: NDArray[np.integer],
    how: NDArray[np.integer],
) -> _Ids:
    node = np.full(len(site), NOTHING, np.int64)
    placed = np.flatnonzero((site >= 0) & (site < stacks))
    if len(placed):
        columns = (each[placed].astype(np.int64) for each in (native, native_stack, how))
        node[placed] = paths.nodes(site[placed], np.zeros(len(placed), np.int64), *columns)
    return node


def _summed(node: _Ids, size: _Floats, nodes: int) -> _Floats:
    placed = node != NOTHING
    return summed(node[placed], size[placed], nodes)
