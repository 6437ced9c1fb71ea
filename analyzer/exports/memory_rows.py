"""Rows of the memory metrics: what was allocated, what was held at a moment, what was copied.

Their sums are those of ``analyze``: sampled blocks and copies, scaled so that they agree with the exact counters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError
from tachograph.format.enumerations import NativePath

from ..conclusions.copies import read_copies
from ..conclusions.memory import Heap, read_heap
from ..conclusions.memory.shares import shares
from ..conclusions.memory.sums import sum_up
from ..recording.filter import Mask
from ..recording.opened import Recording
from ..recording.question_options import Metric
from ..recording.time_window import Window
from ..samples.sites import NOT_SAMPLED, Sites
from .rows import NONE, Rows

_Ids = NDArray[np.int64]


def heap_rows(recording: Recording, window: Window, processes: Mask | None, held: Metric) -> Iterator[tuple[str, Rows]]:
    """What was allocated (``alloc``), and what was held at a moment (``inuse``), with numbers of blocks.

    ``held`` is LIVE or END.
    """
    heap = _heap(recording, window, processes, "heap")
    for name, measure in (("alloc", "allocated_bytes"), ("inuse", _HELD[held])):
        for rows in _blocks(recording, heap, measure):
            yield name, rows


_HELD = {Metric.LIVE: "live_at_peak_bytes", Metric.END: "live_at_end_bytes"}


def allocated_rows(recording: Recording, window: Window, processes: Mask | None = None) -> Iterator[Rows]:
    """Blocks allocated in the window; each stands for all of the blocks that were as likely to be sampled."""
    heap = _heap(recording, window, processes, "allocated")
    yield from _blocks(recording, heap, "allocated_bytes")


def live_rows(recording: Recording, window: Window, processes: Mask | None = None) -> Iterator[Rows]:
    """Blocks that were held when the footprint was highest (in the window), whenever they were allocated."""
    heap = _heap(recording, window, processes, "live")
    yield from _blocks(recording, heap, "live_at_peak_bytes")


def resident_rows(recording: Recording, window: Window, processes: Mask | None = None) -> Iterator[Rows]:
    """Blocks that were held when the resident sets were largest (in the window).

    Errors:
        FormatError: memory was not recorded, or resident sets were never read.
    """
    heap = _heap(recording, window, processes, "resident")
    if np.isnan(heap.resident_peak.bytes):
        raise FormatError("the resident set was not recorded: there is no metric 'resident' to export")
    yield from _blocks(recording, heap, "live_at_resident_peak_bytes")


def end_rows(recording: Recording, window: Window, processes: Mask | None = None) -> Iterator[Rows]:
    """Blocks that are held at the end of the window, whenever they were allocated.

    Without a window that is when the interpreter began to shut down, where it was seen.
    """
    heap = _heap(recording, window, processes, "end")
    yield from _blocks(recording, heap, "live_at_end_bytes")


def copied_rows(recording: Recording, window: Window, _: Mask | None = None) -> Iterator[Rows]:
    """Sampled copies with what they stand for, and what the threads copied beside them."""
    sites = Sites(recording)
    copies = read_copies(recording, window, sites)
    if copies is None:
        raise _not_recorded("copied")
    mine, left = copies.sampled, np.flatnonzero(copies.unseen)
    native = _Native(copies.native_frame[mine], copies.native_stack[mine], copies.native_path[mine])
    yield _rows(copies.time_ns[mine], copies.thread[mine], copies.site[mine], copies.bytes[mine], sites, native)
    if len(left):
        last = np.full(len(left), copies.time_ns.max())
        yield _rows(last, left, np.full(len(left), sites.label(NOT_SAMPLED)), copies.unseen[left], sites)


def _heap(recording: Recording, window: Window, processes: Mask | None, metric: str) -> Heap:
    heap = read_heap(recording, window, processes)
    if heap is None:
        raise _not_recorded(metric)
    return heap


def _not_recorded(metric: str) -> FormatError:
    return FormatError(f"memory was not recorded: there is no metric {metric!r} to export")


def _blocks(recording: Recording, heap: Heap, measure: str) -> Iterator[Rows]:
    """Blocks with their part of what ``analyze`` says of their site, and what it says of sites without blocks."""
    found = shares(heap, sum_up(heap, recording.rows("threads"), None).sites, measure)
    blocks = heap.blocks.where(found.blocks)
    threadless = recording.rows("threads") + blocks.process.astype(np.int64)
    thread = np.where(blocks.thread == NONE, threadless, blocks.thread)
    native = _Native(blocks.native_frame, blocks.native_stack, blocks.native_path)
    # A block stands for as many of its size as make up the bytes that it stands for.
    number = np.divide(found.bytes, blocks.certain, out=np.ones(len(blocks)), where=blocks.certain > 0)
    yield replace(_rows(blocks.birth_ns, thread, blocks.site, found.bytes, heap.sites, native), blocks=number)
    rest = np.flatnonzero(found.rest > 0)
    # It belongs to no thread, and to no process more than to another.
    first = int(heap.counted[0]) if len(heap.counted) else 0
    threadless = np.full(len(rest), recording.rows("threads") + first)
    remainder = _rows(np.full(len(rest), heap.start_ns), threadless, rest, found.rest[rest], heap.sites)
    yield replace(remainder, blocks=np.zeros(len(rest)))


class _Native(NamedTuple):
    """Where native code called: as in ``Blocks``."""

    frame: NDArray[np.integer]
    stack: NDArray[np.integer]
    how: NDArray[np.integer]


def _rows(
    time_ns: _Ids,
    thread: _Ids,
    site: _Ids,
    weight: NDArray[np.float64],
    sites: Sites,
    native: _Native | None = None,
) -> Rows:
    placed = site < sites.nodes
    native = native or _Native(*(np.full(len(site), none) for none in (NONE, NONE, NativePath.UNRECORDED)))
    return Rows(
        time_ns=time_ns,
        end_ns=time_ns,
        thread=thread.astype(np.int64),
        stack=np.where(placed, site, NONE),
        # A site without a stack is named after its native function already.
        native=np.where(placed, native.frame, NONE).astype(np.int64),
        state=np.where(placed, 0, site - sites.nodes),
        weight=weight,
        labels=sites.labels,
        native_stack=np.where(placed, native.stack, NONE).astype(np.int64),
        native_path=native.how.astype(np.int64),
    )
