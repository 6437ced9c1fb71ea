"""Division of samples, waits, blocks and copies into bins of time, before it is known which rows a report shows.

Samples and waits come through a sink of the stream; blocks and copies become rows with a bin of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ..conclusions.copies import Copies
from ..conclusions.memory import Heap
from ..profile.held_memory import Held, HeldPaths
from ..recording.call_tree import NOTHING
from ..recording.filter import Filter, Mask
from ..recording.time_window import TimeRanges, Window
from ..samples.call_paths import PathSums
from ..samples.groups import Keys, Totals
from ..samples.sites import BEFORE_RECORDING, INHERITED, Sites
from ..samples.stream import CpuBatch, Stream, WaitBatch
from .flame_tree import FlamePaths
from .series import MEASURES, Bins, PlaceSums, Rows
from .targets import Ids, Labels, Values

MANY_THREADS = 2000
"""If there are more threads, each has sums only for the bins in which it did something."""

_MAX_THREAD = 1 << 32
"""Ids of threads are less."""


class Sampled:
    """Sums of samples and waits by bin: of every place, of every thread, and of everything."""

    times = True

    def __init__(self, stream: Stream, paths: PathSums, bins: Bins, main: Mask) -> None:
        """``main`` says which threads are main threads; ``paths`` finds call paths, and is fed as well."""
        self._window = stream.window
        self._bins = bins
        self._paths = paths
        self._main = main
        self.places = PlaceSums()
        """Sums by node of the tree of call paths."""
        self.threads = GridSums(len(main), bins.count) if len(main) <= MANY_THREADS else ThreadSums(bins.count)
        self.everything = GridSums(1, bins.count)

    def cpu(self, batch: CpuBatch) -> None:
        """Takes some CPU samples."""
        number, place = self._bins.index(batch.time_ns), self._paths.nodes(batch)
        self._add(Rows(number, place, batch.thread, batch.parts._asdict(), batch.squared))

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits; those for a processor do not count, the others are shared out over the bins they touch."""
        batch = batch.for_the_world()
        row, first, last = np.arange(len(batch)), batch.start_ns, batch.end_ns
        if self._window.spans is not None:
            row, first, last = _pieces(row, batch.track, first, last, self._window.spans)
        piece, number, shown_ns = _spread(first, last, self._window, self._bins)
        row = row[piece]
        length = (batch.end_ns - batch.start_ns)[row]
        wait = batch.whole_ns[row] * np.where(length > 0, shown_ns / np.maximum(length, 1), 1.0)
        thread = batch.thread[row]
        weights = {"wait": wait, "main_wait": np.where(self._main[thread], wait, 0.0)}
        self._add(Rows(number, self._paths.nodes(batch)[row], thread, weights))

    def add_up(self, rows: Rows) -> None:
        """Adds rows of any kind to the sums by thread and of everything, and to those of no place."""
        self.threads.add(rows.time_bin, rows.thread, rows.weights)
        nothing = np.zeros(len(rows.time_bin), np.int64)
        self.everything.add(rows.time_bin, nothing, rows.weights)
        if rows.squared is not None:
            weight = np.sum(list(rows.weights.values()), axis=0)
            observed = {"samples": np.ones(len(weight)), "weight": weight, "weight_squared": rows.squared}
            self.everything.add(rows.time_bin, nothing, observed)

    def _add(self, rows: Rows) -> None:
        self.places.add(rows)
        self.add_up(rows)


class GridSums:
    """Sums by row and bin, by measure."""

    def __init__(self, rows: int, bins: int) -> None:
        self._rows = rows
        self._bins = bins
        self.grids: dict[str, Values] = {}

    def add(self, bins: Ids, row: NDArray[np.integer], weights: Mapping[str, Values]) -> None:
        """Adds weights."""
        key = row.astype(np.int64) * self._bins + bins
        for name, values in weights.items():
            sums = np.bincount(key, weights=values, minlength=self._rows * self._bins)
            grid = self.grids.setdefault(name, np.zeros((self._rows, self._bins)))
            grid += sums.reshape(self._rows, self._bins)

    def of(self, rows: Ids) -> dict[str, NDArray[np.float32]]:
        """The grids of some rows, for the measures that are known."""
        return {name: grid[rows].astype(np.float32) for name, grid in self.grids.items() if name in MEASURES}


class ThreadSums:
    """Sums by thread and bin for many threads, stored only for bins in which a thread did something."""

    def __init__(self, bins: int) -> None:
        self._bins = bins
        self._keys = Keys({"thread": _MAX_THREAD, "bin": bins})
        self._sums = Totals(MEASURES)
        self._measures: set[str] = set()

    def add(self, bins: Ids, thread: NDArray[np.integer], weights: Mapping[str, Values]) -> None:
        """Adds weights."""
        self._measures |= weights.keys()
        if len(bins):
            number = self._keys.of({"thread": thread, "bin": bins})
            self._sums.add(number, len(self._keys), weights)

    def of(self, threads: Ids) -> dict[str, NDArray[np.float32]]:
        """The grids of some threads, for the measures that are known."""
        cells, order = self._keys.columns(), np.argsort(threads)
        row = np.append(order, -1)[np.searchsorted(threads[order], cells["thread"])]
        matching = np.flatnonzero(np.append(threads, -1)[row] == cells["thread"])
        grids = {}
        for name in MEASURES:
            if name in self._measures:
                grids[name] = np.zeros((len(threads), self._bins), np.float32)
                grids[name][row[matching], cells["bin"][matching]] = self._sums[name][matching]
        return grids


def _spread(start_ns: Ids, end_ns: Ids, window: Window, bins: Bins) -> tuple[Ids, Ids, Values]:
    """Row numbers, bins, and the nanoseconds of each row that lie in the bin; moments outside of all are cut."""
    low, high = np.maximum(start_ns, window.start_ns), np.minimum(end_ns, window.end_ns)
    first, last = bins.index(low), bins.index(np.maximum(high - 1, low))
    repeats = last - first + 1
    row = np.repeat(np.arange(len(start_ns)), repeats)
    begun = np.cumsum(repeats) - repeats
    number = first[row] + np.arange(len(row)) - begun[row]
    left = np.where(number == first[row], low[row], bins.start_ns + number * bins.width_ns)
    right = np.where(number == last[row], high[row], bins.start_ns + (number + 1) * bins.width_ns)
    return row, number, np.maximum(right - left, 0.0)


def _pieces(row: Ids, thread: Ids, start_ns: Ids, end_ns: Ids, spans: TimeRanges) -> tuple[Ids, Ids, Ids]:
    """The pieces of rows that lie in ``spans``: row, start and end of each. A row without length stays as it is."""
    order = np.lexsort((start_ns, thread))
    order = order[(end_ns > start_ns)[order]]
    pieces = TimeRanges(thread[order], start_ns[order], end_ns[order], row[order]).within(spans)
    moment = end_ns <= start_ns
    return (
        np.concatenate([pieces.group, row[moment]]),
        np.concatenate([pieces.start_ns, start_ns[moment]]),
        np.concatenate([pieces.end_ns, end_ns[moment]]),
    )


def memory_rows(held: Held, by_path: HeldPaths, paths: FlamePaths, labels: Labels, bins: Bins) -> Iterator[Rows]:
    """Rows of bytes allocated in a window, the net change of bytes held, and bytes copied, by path place."""
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


def _heap_rows(
    heap: Heap, selected: Filter, place: Ids, paths: FlamePaths, labels: Labels, bins: Bins
) -> Iterator[Rows]:
    """Older blocks count as of the first bin; and so does what was held before recording began."""
    blocks = heap.blocks
    mine = heap.of_threads(selected.named)
    mine &= place >= 0
    allocated = mine & heap.allocated_in_window()
    yield _rows(bins, blocks.birth_ns, place, blocks.thread, {"allocated": blocks.bytes}, allocated)
    blocks = heap.held
    size = blocks.bytes
    held = mine & blocks.followed & (blocks.birth_ns <= heap.end_ns) & (blocks.death_ns > heap.start_ns)
    yield _rows(bins, np.maximum(blocks.birth_ns, heap.start_ns), place, blocks.thread, {"net": size}, held)
    freed = held & (blocks.death_ns <= heap.end_ns)
    yield _rows(bins, blocks.death_ns, place, blocks.thread, {"net": -size}, freed)
    if selected.named is None and heap.window.spans is None:
        yield from _before_rows(heap, paths, labels, bins)


def _before_rows(heap: Heap, paths: FlamePaths, labels: Labels, bins: Bins) -> Iterator[Rows]:
    """Rows of memory held when a process's recording began, until the process ends: little is released before that."""
    before = heap.before
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
