"""Copy volume by site (Scalene 2023, section 3.5), from the sampled copies of the table ``copies``.

A sampled copy of s bytes stands for s / p bytes, p = 1 - exp(-s / mean). The bytes that a thread copied between its
rows are known exactly, so the estimated part of the copies is scaled to them, some rows at a time, as for the sampled
blocks (``memory.calibration``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import filled, ids, no_rows, numbers
from tachograph.format.enumerations import NativePath

from ..recording.frame import WholeNumbers
from ..recording.opened import Recording
from ..recording.time_window import Window
from ..samples.sites import NOT_SAMPLED, NodeSums, Sites
from ..samples.summary import Columns, Placement
from ..statistics.grouped_sums import summed
from ..statistics.intervals import parts_of_sum
from .memory.blocks import beyond, sizes
from .memory.calibration import ratio_factors
from .memory.memory_columns import per_second

GROUP_ROWS = 20
"""Rows of a thread that are scaled together."""

ALTERNATING = 1.8
"""Greatest variance of copies, by that of independent samples. A point is drawn in each stretch of the bytes: where
lines take turns with copies as large as a stretch, those that have none are not the same line's.
"""

MEASURES = ("copied_bytes", "copied_beyond", "copied_variance", "copy_samples")
COLUMNS = (
    "copied_bytes",
    "copied_bytes_low",
    "copied_bytes_high",
    "copy_mb_per_s",
    "copy_samples",
    "total_copied_bytes",
)

_COLUMNS = (
    "time_ns",
    "thread",
    "bytes",
    "size_bytes",
    "mean_bytes",
    "stack",
    "native_frame",
    "stack_state",
    "native_stack",
    "native_path",
    "span",
)
_Floats = NDArray[np.float64]
_Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Copies:
    """One entry per row of the window in every array, in the order of time. ``certain`` and ``beyond`` as for blocks.

    The row of the rest at the end of a thread has no site: it stands for nothing, its bytes are shared out.
    """

    time_ns: _Ids
    thread: _Ids
    site: _Ids
    certain: _Floats
    beyond: _Floats
    variance: _Floats
    sampled: NDArray[np.bool_]
    native_frame: _Ids
    """The caller of the copy, -1 where it is not known; ``native_stack`` and ``native_path`` are as for blocks."""
    native_stack: _Ids
    native_path: NDArray[np.uint8]
    unseen: _Floats
    """By thread, bytes that no sampled copy stands for."""
    span: _Ids
    """The innermost span that the thread was in; -1 where there is none, or the row does not say so."""

    @property
    def bytes(self) -> _Floats:
        """Bytes that each copy stands for."""
        return self.certain + self.beyond


def read_copies(recording: Recording, window: Window, sites: Sites) -> Copies | None:
    """The copies of the part of a recording that lies in ``window``; None if they were not recorded."""
    if not recording.recorded("copies"):
        return None
    schema = pa.schema([recording.specification.tables["copies"].schema.field(name) for name in _COLUMNS])
    batches = [no_rows(schema), *recording.batches("copies", _COLUMNS)]
    parts = [_decode(batch, sites, window) for batch in batches]
    columns = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    time_ns, thread, site, exact, size, mean, native, native_stack, how, span = columns
    sampled = size > 0
    group, count = _groups(thread)
    owed = summed(group, exact, count)
    rest, variance = estimates(size, mean, group, owed)
    left = owed - summed(group, size + rest, count)
    threads = len(recording.all_threads)
    owner = np.zeros(count, np.int64)
    owner[group] = thread
    unseen = summed(owner, np.where(left > 0.5, left, 0.0), threads)
    return Copies(time_ns, thread, site, size, rest, variance, sampled, native, native_stack, how, unseen, span)


def estimates(size: _Floats, mean: _Floats, group: _Ids, owed: _Floats) -> tuple[_Floats, _Floats]:
    """Bytes beyond its own that each sampled copy stands for, and its variance; ``owed``: bytes that a group copied."""
    rest = beyond(size, np.maximum(mean, 1.0))
    weight = size + rest
    factors = ratio_factors(group, size, rest, owed)[group]
    return rest * factors, factors**2 * weight * np.minimum(weight, ALTERNATING * rest)


def sum_copies(
    copies: Copies, sites: Sites, selected: NDArray[np.bool_] | None, threads: int
) -> tuple[NodeSums, _Floats]:
    """Measures by site, and copied bytes by thread, of the threads of ``selected`` (None: all)."""
    mine = copies.sampled if selected is None else copies.sampled & selected[copies.thread]
    left = copies.unseen if selected is None else copies.unseen * selected
    unseen = sites.label(NOT_SAMPLED) if left.any() else -1
    site = copies.site[mine]
    measures = (copies.bytes[mine], copies.beyond[mine], copies.variance[mine], np.ones(len(site)))
    sums = np.column_stack([summed(site, values, len(sites)) for values in measures])
    if unseen >= 0:
        sums[unseen, 0] += left.sum()
    by_thread = summed(copies.thread[mine], copies.bytes[mine], threads) + left
    return NodeSums(MEASURES, sums[: sites.nodes], list(sites.labels), sums[sites.nodes :]), by_thread


@dataclass(frozen=True)
class CopyColumns:
    """Makes the columns about copies from the measures ``names`` of a summary; NaN if copies were not recorded."""

    names: tuple[str, ...]
    whole: tuple[float, float] | None
    """The estimated part of all copies (beyond the sampled ones), and its variance; None: not recorded."""
    wall_s: float | None

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> Columns:
        """The columns, for every row of a frame."""
        if self.whole is None:
            nothing = np.full(placement.rows, np.nan)
            return dict.fromkeys(COLUMNS, nothing) | {"copy_samples": WholeNumbers.of_floats(nothing)}
        size, rest, variance, samples = (own[:, self.names.index(name)] for name in MEASURES)
        low, high = parts_of_sum(rest, variance, self.whole)
        values = (
            size,
            size - rest + low,
            size - rest + high,
            per_second(size, self.wall_s),
            WholeNumbers.of_floats(samples),
            total[:, self.names.index("copied_bytes")],
        )
        return dict(zip(COLUMNS, values, strict=True))


def _decode(batch: pa.RecordBatch, sites: Sites, window: Window) -> tuple[NDArray[Any], ...]:
    """time_ns, thread, site, bytes, size, mean, native frame, native stack, native path, span."""
    time_ns = numbers(batch.column("time_ns"))
    thread, span = ids(batch.column("thread")), ids(batch.column("span"))
    inside = window.selects(thread if window.tracks is None else window.tracks.of(thread, span), time_ns)
    stack, native, thread = (ids(batch.column(name))[inside] for name in ("stack", "native_frame", "thread"))
    exact, size, mean = (sizes(batch, "copies", name)[inside] for name in ("bytes", "size_bytes", "mean_bytes"))
    site = np.full(len(thread), -1, np.int64)
    sampled = size > 0
    state = numbers(batch.column("stack_state"))[inside]
    time_ns = time_ns[inside]
    site[sampled] = sites.number(stack[sampled], state[sampled], native[sampled], thread[sampled], time_ns[sampled])
    native_stack = ids(batch.column("native_stack"))[inside]
    how = filled(batch.column("native_path"), NativePath.UNRECORDED)[inside].astype(np.uint8)
    return time_ns, thread, site, exact, size, mean, native, native_stack, how, span[inside]


def _groups(thread: _Ids) -> tuple[_Ids, int]:
    """Groups of consecutive rows of a thread; the rows left over at its end belong to its last whole group."""
    order = np.argsort(thread, kind="stable")
    first = np.flatnonzero(np.diff(thread[order], prepend=-1))
    rows = np.diff(np.append(first, len(order)))
    place = np.arange(len(order)) - np.repeat(first, rows)
    groups = np.maximum(rows // GROUP_ROWS, 1)
    number = np.minimum(place // GROUP_ROWS, np.repeat(groups, rows) - 1)
    base = np.concatenate(([0], np.cumsum(groups)))[:-1]
    result = np.empty(len(order), np.int64)
    result[order] = np.repeat(base, rows) + number
    return result, int(groups.sum())
