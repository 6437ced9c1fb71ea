"""Sampled blocks and copies as rows with a bin of time: what was allocated, freed and copied when."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..conclusions.copies import Copies
from ..conclusions.memory import Heap
from ..profile.held_memory import Held
from ..profile.held_paths import HeldPaths
from ..recording.filter import Filter, Mask
from ..recording.tree import NOTHING
from ..samples.sites import BEFORE_RECORDING, INHERITED, Sites
from .bins import Bins
from .flame_paths import FlamePaths
from .labels import Labels
from .series import Rows

Ids = NDArray[np.int64]


def memory_rows(held: Held, by_path: HeldPaths, paths: FlamePaths, labels: Labels, bins: Bins) -> Iterator[Rows]:
    """What was allocated in a window, the net of what is held, and what was copied, by path place."""
    if held.heap is not None:
        place = _places(held.heap.sites, held.heap.blocks.site, by_path.blocks, paths, labels)
        yield from _heap_rows(held.heap, held.filter, place, paths, labels, bins)
    if held.copies is not None:
        sampled = held.copies.sampled
        place = np.full(len(sampled), NOTHING, np.int64)
        site, node = held.copies.site[sampled], by_path.copies[sampled]
        place[sampled] = _places(held.sites, site, node, paths, labels)
        yield from _copy_rows(held.copies, held.filter.threads, place, bins)


def _places(sites: Sites, site: Ids, node: Ids, paths: FlamePaths, labels: Labels) -> Ids:
    """The path places of what the heap found at ``sites``; NOTHING for labels that the profile has not."""
    place = labels.places(sites, site)
    return np.where(place < 0, NOTHING, paths.places(node, place - labels.nodes))


def _heap_rows(heap: Heap, wanted: Filter, place: Ids, paths: FlamePaths, labels: Labels, bins: Bins) -> Iterator[Rows]:
    """Older blocks count as of the first bin; and so does what was held before recording began."""
    blocks = heap.blocks
    mine = heap.of_threads(wanted.named)
    mine &= place >= 0
    allocated = mine & heap.allocated_in_window()
    yield _rows(bins, blocks.birth_ns, place, blocks.thread, {"allocated": blocks.bytes}, allocated)
    blocks = heap.held
    size = blocks.bytes
    held = mine & blocks.followed & (blocks.birth_ns <= heap.end_ns) & (blocks.death_ns > heap.start_ns)
    yield _rows(bins, np.maximum(blocks.birth_ns, heap.start_ns), place, blocks.thread, {"net": size}, held)
    freed = held & (blocks.death_ns <= heap.end_ns)
    yield _rows(bins, blocks.death_ns, place, blocks.thread, {"net": -size}, freed)
    if wanted.named is None and heap.window.spans is None:
        yield from _before_rows(heap, paths, labels, bins)


def _before_rows(heap: Heap, paths: FlamePaths, labels: Labels, bins: Bins) -> Iterator[Rows]:
    """What each process held when its recording began, until it is gone: hardly any of it is released before that."""
    before = heap.counters.before()
    for name, forked in ((BEFORE_RECORDING, False), (INHERITED, True)):
        mine = [each for each in before if heap.present[each] and bool(heap.forked[each]) is forked]
        place = labels.place(name)
        if not mine or place is None:
            continue
        process = np.array(mine, np.int64)
        size, start = np.array([before[each] for each in mine]), heap.lifetimes.start_ns[process]
        where, no_thread = np.full(len(mine), place - labels.nodes, np.int64), np.full(len(mine), NOTHING)
        where = paths.places(np.full(len(mine), NOTHING), where)
        everything = np.ones(len(mine), np.bool_)
        yield _rows(bins, np.maximum(start, heap.start_ns), where, no_thread, {"net": size}, everything)
        # What is held at the very end was held there.
        gone = heap.gone_ns[process]
        yield _rows(
            bins,
            gone + 1,
            where,
            no_thread,
            {"net": -size},
            gone < min(heap.end_ns, int(heap.gone_ns[heap.present].max())),
        )


def _copy_rows(copies: Copies, threads: Mask | None, place: Ids, bins: Bins) -> Iterator[Rows]:
    # The thread -1 is none.
    mine = np.ones(len(copies.thread), np.bool_) if threads is None else np.append(threads, False)[copies.thread]
    yield _rows(bins, copies.time_ns, place, copies.thread, {"copied": copies.bytes}, mine & (place >= 0))


def _rows(
    bins: Bins,
    time_ns: NDArray[np.int64],
    place: NDArray[np.int64],
    thread: NDArray[np.integer],
    weights: dict[str, NDArray[np.float64]],
    mask: Mask,
) -> Rows:
    # A block of a thread that is no thread of the program's has no row of its own among the threads.
    return Rows(
        bins.index(time_ns[mask]),
        place[mask],
        np.maximum(thread[mask].astype(np.int64), 0),
        {name: values[mask] for name, values in weights.items()},
    )
