"""What can be exported, and the rows that say how much of it there was on which stack."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError

from ..recording.filter import Mask
from ..recording.interpreter_phases import Edges, find_edges
from ..recording.opened import Recording
from ..recording.prefetch import prefetched
from ..recording.time_window import Window
from ..samples.attribution import SIGNAL, SIGNAL_THREAD
from ..samples.reduction import share_ticks, signals, waits_recorded, whole_ticks
from ..samples.weights import weighted_batches
from .memory_rows import allocated_rows, copied_rows, live_rows
from .rows import STATE_LABELS, Rows, ids, states

_ON_CPU = "cpu"
"""Value of ``target`` for a thread that was ready to run: that is not waiting for anything (docs: attribution)."""


class Metric(enum.StrEnum):
    """What ``--metric`` offers."""

    CPU = "cpu"
    WAIT = "wait"
    ALLOCATED = "allocated"
    LIVE = "live"
    COPIED = "copied"

    @property
    def unit(self) -> str:
        """Unit of the weights: ``nanoseconds`` or ``bytes``."""
        return "nanoseconds" if self in (Metric.CPU, Metric.WAIT) else "bytes"

    @property
    def doc(self) -> str:
        """What the weights are, in a few words."""
        return _KINDS[self].doc


@dataclass(frozen=True, slots=True)
class _Kind:
    doc: str
    read: Callable[[Recording, Window, Mask | None], Iterator[Rows]]


def read_rows(recording: Recording, metric: Metric, window: Window, processes: Mask | None = None) -> Iterator[Rows]:
    """The rows of a metric that lie in the window, in batches; of some processes at least, where it says which.

    Errors:
        FormatError: it was not recorded, or the recording is damaged.
    """
    return _KINDS[metric].read(recording, window, processes)


def cpu_rows(recording: Recording, window: Window, _: Mask | None = None) -> Iterator[Rows]:
    """CPU samples with their CPU time."""
    edges = find_edges(recording)
    columns = ["time_ns", "thread", "stack", "native_frame", "cpu_ns", "origin", "stack_state"]
    has_signals = signals(recording)
    process = recording.table("threads").column("process").to_numpy().astype(np.int64)
    batches = prefetched(weighted_batches(recording, columns))
    seen = 0
    for batch in whole_ticks(batches) if has_signals else batches:
        rows = _cpu_batch(batch, edges, seen, process, recording.interval_ns if has_signals else None)
        seen += batch.num_rows
        yield rows if window.whole else rows.only(window.contains(rows.time_ns))


def _cpu_batch(
    batch: pa.RecordBatch, edges: Edges, first_row: int, process: NDArray[np.int64], interval_ns: int | None
) -> Rows:
    thread, time_ns = batch.column("thread").to_numpy(), batch.column("time_ns").to_numpy()
    weight = batch.column("cpu_ns").to_numpy().astype(np.float64)
    if interval_ns is not None:
        # Each row of one signal has all of the time that passed: it is shared out (Scalene 2023, section 2.1).
        shared = np.isin(batch.column("origin").to_numpy(), (SIGNAL, SIGNAL_THREAD))
        weight[shared], _ = share_ticks(time_ns[shared], process[thread[shared]], weight[shared], interval_ns)
    state = edges.mark_rows(states(batch.column("stack_state")), thread, first_row)
    return Rows(
        time_ns=time_ns,
        end_ns=time_ns,
        thread=thread.astype(np.int64),
        stack=ids(batch.column("stack")),
        native=ids(batch.column("native_frame")),
        state=state.astype(np.int64),
        weight=weight,
        labels=STATE_LABELS,
    )


def wait_rows(recording: Recording, window: Window, _: Mask | None = None) -> Iterator[Rows]:
    """Spans of waiting, with the part of each that lies in the window."""
    if not waits_recorded(recording):
        raise FormatError("waiting was not recorded: there is no metric 'wait' to export")
    edges = find_edges(recording)
    targets = [value.name for value in recording.specification.enums["target"]]
    columns = ["start_ns", "end_ns", "off_cpu_ns", "thread", "stack", "native_frame", "target", "stack_state"]
    for batch in prefetched(recording.batches("waits", columns)):
        start_ns, end_ns = batch.column("start_ns").to_numpy(), batch.column("end_ns").to_numpy()
        thread = batch.column("thread").to_numpy()
        part = window.fraction(start_ns, end_ns)
        rows = Rows(
            time_ns=np.maximum(start_ns, window.start_ns),
            end_ns=np.minimum(end_ns, window.end_ns),
            thread=thread.astype(np.int64),
            stack=ids(batch.column("stack")),
            native=ids(batch.column("native_frame")),
            state=edges.mark_times(states(batch.column("stack_state")), thread, start_ns, end_ns).astype(np.int64),
            weight=batch.column("off_cpu_ns").to_numpy() * part,
            labels=STATE_LABELS,
        )
        yield rows.only((part > 0) & (batch.column("target").to_numpy() != targets.index(_ON_CPU)))


_KINDS = {
    Metric.CPU: _Kind("CPU time", cpu_rows),
    Metric.WAIT: _Kind("waiting off the CPU", wait_rows),
    Metric.ALLOCATED: _Kind("allocated bytes", allocated_rows),
    Metric.LIVE: _Kind("bytes live at the end", live_rows),
    Metric.COPIED: _Kind("copied bytes", copied_rows),
}

__all__ = ["Metric", "read_rows"]
