"""Rows of each metric that can be exported, in one shape: amount, time, thread and stack.

Sums of the memory metrics (allocated, held at a moment, copied) are those of ``analyze``: sampled blocks and copies,
scaled so that they agree with the exact counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError
from tachograph.format.enumerations import NativePath

from ..conclusions.copies import read_copies
from ..conclusions.memory import Heap, read_heap
from ..conclusions.memory.sums import shares, sum_up
from ..recording.filter import Mask
from ..recording.frame import take_rows
from ..recording.opened import Recording
from ..recording.question_options import Metric
from ..recording.time_window import Window
from ..recording.traced_requests import TracedRequests
from ..samples.attribution import STATES
from ..samples.sites import NOT_SAMPLED, Sites, state_label
from ..samples.stream import Stream

_Ids = NDArray[np.int64]


def heap_rows(recording: Recording, window: Window, processes: Mask | None, held: Metric) -> Iterator[tuple[str, Rows]]:
    """Allocated bytes (``alloc``), and bytes held at a moment (``inuse``), with numbers of blocks.

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
    """Sampled copies with their estimated rest, and the bytes that threads copied without a sample."""
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
    """Blocks, scaled to the sums of ``analyze`` for their sites, and the sums of sites without blocks."""
    scaled = shares(heap, sum_up(heap, len(recording.all_threads), None).sites, measure)
    blocks = heap.blocks.where(scaled.blocks)
    threadless = len(recording.all_threads) + blocks.process.astype(np.int64)
    thread = np.where(blocks.thread == NONE, threadless, blocks.thread)
    native = _Native(blocks.native_frame, blocks.native_stack, blocks.native_path)
    # A block stands for as many of its size as make up the bytes that it stands for.
    number = np.divide(scaled.bytes, blocks.certain, out=np.ones(len(blocks)), where=blocks.certain > 0)
    yield replace(_rows(blocks.birth_ns, thread, blocks.site, scaled.bytes, heap.sites, native), blocks=number)
    rest = np.flatnonzero(scaled.rest > 0)
    # It belongs to no thread, and to no process more than to another.
    first = int(heap.counted[0]) if len(heap.counted) else 0
    threadless = np.full(len(rest), len(recording.all_threads) + first)
    remainder = _rows(np.full(len(rest), heap.start_ns), threadless, rest, scaled.rest[rest], heap.sites)
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


NONE = -1
"""Stands for "none" among ids."""

STATE_LABELS = [state_label(state) for state in range(STATES)]
"""Labels by state of the stack: ``stack_state``, and the analyzer's own for start and end of the interpreter."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one metric; all arrays have one length.

    ``thread`` is an id of ``threads``, or the number of threads plus a process id for what belongs to none of its
    threads. ``stack`` and ``native`` are ids or NONE. ``state`` says why there is no stack: it is the place of a name
    in ``labels``. ``weight`` is in nanoseconds or bytes. ``blocks`` is how many blocks of memory a row stands for.
    """

    time_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    thread: NDArray[np.int64]
    stack: NDArray[np.int64]
    native: NDArray[np.int64]
    state: NDArray[np.int64]
    weight: NDArray[np.float64]
    labels: Sequence[str]
    native_stack: NDArray[np.int64] | None = None
    """Native call paths, NONE where there is none; None if they are not of interest."""
    native_path: NDArray[np.int64] | None = None
    """Source of the native paths: values of the enumeration ``native_path``."""
    blocks: NDArray[np.float64] | None = None
    """None where rows are not of blocks, or their number is not of interest; 0 where it is unknown."""
    request: NDArray[np.int64] | None = None
    """The traced request that each row was in, or NONE; None where that is not of interest, or not known."""

    def only(self, mask: NDArray[np.bool_]) -> Rows:
        """The rows of the mask."""
        return self if mask.all() else take_rows(self, mask)

    def __len__(self) -> int:
        return len(self.weight)


def read_rows(
    recording: Recording,
    metric: Metric,
    window: Window,
    processes: Mask | None = None,
    requests: TracedRequests | None = None,
) -> Iterator[Rows]:
    """The rows of a metric that lie in the window, in batches; of some processes at least, where it says which.

    Of CPU time and waits they say which of ``requests`` they were in.

    Errors:
        FormatError: it was not recorded, or the recording is damaged.
    """
    if metric in _STREAMED:
        return _STREAMED[metric](recording, window, requests)
    return _READERS[metric](recording, window, processes)


def cpu_rows(recording: Recording, window: Window, requests: TracedRequests | None = None) -> Iterator[Rows]:
    """CPU samples with their CPU time."""
    stream = Stream(recording, window, tracks=None if requests is None else requests.tracks)
    for batch in stream.cpu(times=True):
        yield Rows(
            time_ns=batch.time_ns,
            end_ns=batch.time_ns,
            thread=batch.thread.astype(np.int64),
            stack=_ids(batch.stack, stream),
            native=batch.native,
            state=batch.state.astype(np.int64),
            weight=batch.weight_ns,
            labels=STATE_LABELS,
            native_stack=batch.native_stack,
            native_path=batch.native_path,
            request=None if requests is None else requests.of(batch.track),
        )


def wait_rows(recording: Recording, window: Window, requests: TracedRequests | None = None) -> Iterator[Rows]:
    """Waits, with the part of each that lies in the window; not those for a processor."""
    stream = Stream(recording, window, tracks=None if requests is None else requests.tracks)
    if not stream.waits_known:
        raise FormatError("waiting was not recorded: there is no metric 'wait' to export")
    for each in stream.waits():
        batch = each.for_the_world()
        yield Rows(
            time_ns=np.maximum(batch.start_ns, window.start_ns),
            end_ns=np.minimum(batch.end_ns, window.end_ns),
            thread=batch.thread,
            stack=_ids(batch.stack, stream),
            native=batch.native,
            state=batch.state,
            weight=batch.weight_ns,
            labels=STATE_LABELS,
            native_stack=batch.native_stack,
            native_path=batch.native_path,
            request=None if requests is None else requests.of(batch.track),
        )


def _ids(stack: NDArray[np.integer], stream: Stream) -> NDArray[np.int64]:
    return np.where(stack == stream.nodes, NONE, stack.astype(np.int64))


_STREAMED: Mapping[Metric, Callable[[Recording, Window, TracedRequests | None], Iterator[Rows]]] = {
    Metric.CPU: cpu_rows,
    Metric.WAIT: wait_rows,
}
_READERS: Mapping[Metric, Callable[[Recording, Window, Mask | None], Iterator[Rows]]] = {
    Metric.ALLOCATED: allocated_rows,
    Metric.LIVE: live_rows,
    Metric.RESIDENT: resident_rows,
    Metric.END: end_rows,
    Metric.COPIED: copied_rows,
}
