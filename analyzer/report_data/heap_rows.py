"""Sampled blocks and copies as rows with a bin of time: what was allocated, freed and copied when."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..conclusions.copies import Copies
from ..conclusions.memory import Heap
from ..profile.held_memory import Held
from ..recording.filter import Filter, Mask
from ..samples.sites import Sites
from .bins import Bins
from .labels import Labels
from .series import Rows


def memory_rows(held: Held, labels: Labels, bins: Bins) -> Iterator[Rows]:
    """What was allocated in a window, the net of what is held, and what was copied."""
    if held.heap is not None:
        yield from _heap_rows(held.heap, held.filter, labels, bins)
    if held.copies is not None:
        yield from _copy_rows(held.copies, held.sites, held.filter.threads, labels, bins)


def _heap_rows(heap: Heap, chosen: Filter, labels: Labels, bins: Bins) -> Iterator[Rows]:
    """Older blocks count as of the first bin."""
    blocks = heap.blocks
    wanted = heap.of_threads(chosen.named)
    place = labels.places(heap.sites, blocks.site)
    wanted &= place >= 0
    size = blocks.bytes
    allocated = wanted & heap.allocated_in_window()
    yield _rows(bins, blocks.birth_ns, place, blocks.thread, {"allocated": size}, allocated)
    held = wanted & blocks.followed & (blocks.birth_ns <= heap.end_ns) & (blocks.death_ns > heap.start_ns)
    yield _rows(bins, np.maximum(blocks.birth_ns, heap.start_ns), place, blocks.thread, {"net": size}, held)
    freed = held & (blocks.death_ns <= heap.end_ns)
    yield _rows(bins, blocks.death_ns, place, blocks.thread, {"net": -size}, freed)


def _copy_rows(copies: Copies, sites: Sites, threads: Mask | None, labels: Labels, bins: Bins) -> Iterator[Rows]:
    sampled = np.flatnonzero(copies.sampled)
    place = np.full(len(copies.site), -1, np.int64)
    place[sampled] = labels.places(sites, copies.site[sampled])
    # The thread -1 is none.
    mine = np.ones(len(copies.thread), np.bool_) if threads is None else np.append(threads, False)[copies.thread]
    yield _rows(bins, copies.time_ns, place, copies.thread, {"copied": copies.bytes}, mine & (place >= 0))


def _rows(
    bins: Bins,
    time_ns: NDArray[np.int64],
    place: NDArray[np.int64],
    thread: NDArray[np.integer],
    weights: dict[str, NDArray[np.float64]],
    chosen: Mask,
) -> Rows:
    # A block of a thread that is no thread of the program's has no row of its own among the threads.
    return Rows(
        bins.index(time_ns[chosen]),
        place[chosen],
        np.maximum(thread[chosen].astype(np.int64), 0),
        {name: values[chosen] for name, values in weights.items()},
    )
