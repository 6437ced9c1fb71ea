"""Joins GPUs to stacks by time: how busy the GPU was while a thread was in each place, running or waiting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...recording.interpreter_phases import STARTING, Edges, find_edges
from ...recording.opened import Recording
from ...recording.prefetch import prefetched
from ...recording.time_window import Window
from ...samples.nodes import NodeSums
from ...samples.sites import STATES, state_label
from .readings import Readings, processes_of_threads
from .steps import Busy, Floats, Held, Ids

MEASURES = ("gpu_ns", "gpu_known_ns", "gpu_byte_ns", "gpu_byte_known_ns")
"""Nanoseconds that the GPU was busy, and of which that is known; byte-nanoseconds of its memory, likewise."""

_CPU = ("time_ns", "thread", "stack", "cpu_ns", "stack_state")
_WAITS = ("start_ns", "end_ns", "off_cpu_ns", "thread", "stack", "stack_state")


@dataclass(frozen=True)
class Moments:
    """Spans of time that threads spent in places: nodes of the call tree and, behind them, states of stacks."""

    place: Ids
    thread: Ids
    start_ns: Ids
    end_ns: Ids
    weight_ns: Floats


@dataclass(frozen=True)
class GpuSums:
    """The measures by place, and the most memory that was in use in each (nodes, then labels)."""

    sums: NodeSums
    peak_bytes: Floats


def join_gpu(recording: Recording, readings: Readings, window: Window, threads: NDArray[np.bool_]) -> GpuSums:
    """What the GPUs of their processes did while ``threads`` (a mask) were in each place."""
    nodes = recording.rows("stacks")
    owner = processes_of_threads(recording)
    wanted = sorted(set(owner[threads].tolist()))
    series = {process: (readings.busy(process), readings.held(process)) for process in wanted}
    sums, peak = np.zeros((nodes + STATES, len(MEASURES))), np.full(nodes + STATES, np.nan)
    for moments in moments_of(recording, window, threads):
        process = owner[moments.thread]
        for number in np.unique(process).tolist():
            mine = process == number
            _add(moments, mine, *series[number], sums, peak)
    names = [state_label(number) for number in range(STATES)]
    return GpuSums(NodeSums(MEASURES, sums[:nodes], names, sums[nodes:]), peak)


def _add(moments: Moments, mine: NDArray[np.bool_], busy: Busy, held: Held, sums: Floats, peak: Floats) -> None:
    place, weight = moments.place[mine], moments.weight_ns[mine]
    start, end = moments.start_ns[mine], moments.end_ns[mine]
    # Of a span in which the thread ran and waited in turn, a part is the row's.
    part = weight / np.maximum(end - start, 1)
    busy_ns, known_ns = busy.between(start, end)
    held_bytes = held.at(end)
    known = ~np.isnan(held_bytes)
    columns = (busy_ns * part, known_ns * part, np.where(known, held_bytes, 0.0) * weight, weight * known)
    for column, values in enumerate(columns):
        sums[:, column] += np.bincount(place, values, len(sums))
    np.fmax.at(peak, place, held.most(start, end))


def moments_of(recording: Recording, window: Window, threads: NDArray[np.bool_]) -> Iterator[Moments]:
    """What ``threads`` did in a window: CPU samples, which stand for the time before them, and waits of every kind."""
    edges, nodes = find_edges(recording), recording.rows("stacks")
    row = 0
    for batch in prefetched(recording.batches("cpu", _CPU)):
        thread, time_ns = (batch.column(name).to_numpy() for name in ("thread", "time_ns"))
        state = edges.mark_rows(_states(batch), thread, row)
        row += batch.num_rows
        chosen = threads[thread] & window.selects(thread, time_ns)
        weight = batch.column("cpu_ns").to_numpy()[chosen]
        place, time_ns = _places(batch, state, nodes)[chosen], time_ns[chosen]
        yield Moments(place, thread[chosen].astype(np.int64), time_ns - weight, time_ns, weight.astype(np.float64))
    yield from _waits(recording, window, threads, edges, nodes)


def _waits(
    recording: Recording, window: Window, threads: NDArray[np.bool_], edges: Edges, nodes: int
) -> Iterator[Moments]:
    for batch in recording.batches("waits", _WAITS):
        start, end, thread = (batch.column(name).to_numpy() for name in ("start_ns", "end_ns", "thread"))
        state = edges.mark_times(_states(batch), thread, start, end)
        part = window.part(thread, start, end)
        chosen = threads[thread] & (part > 0)
        place, weight = _places(batch, state, nodes), batch.column("off_cpu_ns").to_numpy() * part
        if window.spans is None:
            start, end = np.maximum(start, window.start_ns), np.minimum(end, window.end_ns)
        yield Moments(place[chosen], thread[chosen].astype(np.int64), start[chosen], end[chosen], weight[chosen])


def _places(batch: pa.RecordBatch, state: NDArray[np.integer], nodes: int) -> Ids:
    stack = batch.column("stack").cast("int64").fill_null(-1).to_numpy()
    return np.where(stack >= 0, stack, nodes + state)


def _states(batch: pa.RecordBatch) -> Ids:
    state = batch.column("stack_state").to_numpy().astype(np.int64)
    return np.where(state >= STARTING, STATES - 1, state)
