"""Memory and copies by call path through Python and native code: who called the allocator, and for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..conclusions.memory.shares import DIVIDED, shares
from ..recording.tree import NOTHING
from ..samples.accumulate import summed
from ..samples.call_paths import CallPaths
from .held_memory import Held

_Ids = NDArray[np.int64]
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeldPaths:
    """The call paths of what was allocated and copied on Python stacks."""

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
        """Those of nothing."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), {})


def held_paths(held: Held, paths: CallPaths) -> HeldPaths:
    """Finds the paths; the tree of ``paths`` grows."""
    blocks, copies = np.zeros(0, np.int64), np.zeros(0, np.int64)
    sums: dict[str, _Floats] = {}
    if held.heap is not None and held.heap_sums is not None:
        heap, sites = held.heap, held.heap_sums.sites
        known = heap.blocks
        blocks = _nodes(paths, heap.sites.nodes, known.site, known.native_frame, known.native_stack, known.native_path)
        for measure in DIVIDED:
            if np.isnan(sites.total(measure)):
                continue
            found = shares(heap, sites, measure, held.filter.named)
            rest = np.flatnonzero(found.rest[: heap.sites.nodes])
            unseen = np.array([paths.of_stack(stack) for stack in rest.tolist()], np.int64)
            node = np.concatenate([blocks[found.blocks], unseen])
            sums[measure] = _summed(node, np.concatenate([found.bytes, found.rest[rest]]), len(paths))
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
