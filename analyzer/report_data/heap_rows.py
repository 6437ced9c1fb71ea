"""Sampled blocks and copies as rows with a span of time: what was allocated, freed and copied when."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..conclusions.copies import read_copies
from ..conclusions.memory import read_heap
from ..recording.filter import Chosen, Mask
from ..recording.opened import Recording
from ..recording.time_window import Window
from ..samples.sites import Sites
from .bins import Bins
from .labels import Labels
from .streams import Rows


def heap_rows(recording: Recording, labels: Labels, window: Window, bins: Bins, chosen: Chosen) -> Iterator[Rows]:
    """What was allocated in a window, and the net of what is held: older blocks count as of the first span."""
    heap = read_heap(recording, window, chosen.processes)
    if heap is None:
        return
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


def copy_rows(recording: Recording, labels: Labels, window: Window, bins: Bins, threads: Mask | None) -> Iterator[Rows]:
    """What was copied in a window."""
    sites = Sites(recording)
    copies = read_copies(recording, window, sites)
    if copies is None:
        return
    sampled = np.flatnonzero(copies.sampled)
    place = np.full(len(copies.site), -1, np.int64)
    place[sampled] = labels.places(sites, copies.site[sampled])
    wanted = _of_threads(copies.thread, threads) & (place >= 0)
    yield _rows(bins, copies.time_ns, place, copies.thread, {"copied": copies.bytes}, wanted)


def _of_threads(thread: NDArray[np.integer], threads: Mask | None) -> Mask:
    """Which rows belong to wanted threads; the thread -1 is none."""
    return np.ones(len(thread), np.bool_) if threads is None else np.append(threads, False)[thread]


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
