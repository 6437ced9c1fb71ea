"""Reads the long tables once, a batch at a time, and hands their rows to a sink with their span of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ..recording.filter import Mask
from ..recording.interpreter_phases import STARTING, Edges
from ..recording.opened import Recording
from ..recording.prefetch import prefetched
from ..recording.time_ranges import Stretches
from ..recording.time_window import Window
from ..samples.attribution import SIGNAL, Attribution, Verdict, attribute
from ..samples.reduction import CpuReducer, whole_ticks
from ..samples.sites import STATES
from ..samples.weights import weighted_batches
from .bins import Bins
from .labels import Labels

Ids = NDArray[np.int64]
Values = NDArray[np.float64]

EVERYTHING = Window()
DRAWN_ROWS = 1 << 19
"""Rows of ``cpu`` that are in memory at a time: each has a dozen numbers here."""


@dataclass(frozen=True)
class Rows:
    """Some rows with the same treatment: ``place`` is a node, or behind the nodes a label."""

    time_bin: Ids
    place: Ids
    thread: Ids
    weights: dict[str, Values]
    """By measure of ``sink.MEASURES``; nanoseconds or bytes."""
    squared: Values | None = None
    """Weights of samples, squared, for the effective number of samples; None for rows that are not samples."""


def cpu_rows(
    recording: Recording,
    edges: Edges,
    labels: Labels,
    window: Window,
    bins: Bins,
    rule: Attribution,
    threads: Mask | None,
) -> Iterator[Rows]:
    """The CPU samples in a window, divided as ``rule`` says; ``threads`` says which are wanted, None: all."""
    reducer = CpuReducer(recording, edges)
    count, nodes = max(recording.rows("threads"), 1), recording.rows("stacks")
    columns = ["time_ns", "thread", "stack", "native_frame", "cpu_ns", "system_ns", "opcode", "origin", "stack_state"]
    batches: Iterable[pa.RecordBatch] = prefetched(weighted_batches(recording, columns, DRAWN_ROWS))
    if reducer.has_signals:
        batches = whole_ticks(batches)
    verdicts = _Verdicts(rule)
    for batch in batches:
        time_ns = batch.column("time_ns").to_numpy()
        place, cell, (weight, system, delay, squared) = reducer.decode(batch, EVERYTHING)
        stack, thread = np.divmod(place, count)
        inside = window.selects(thread, time_ns)
        if threads is not None:
            inside &= threads[thread]
        if not inside.all():
            time_ns, stack, thread, cell = time_ns[inside], stack[inside], thread[inside], cell[inside]
            weight, squared = weight[inside], squared[inside]
            system = None if system is None else system[inside]
            delay = None if delay is None else delay[inside]
        state = verdicts.states(cell)
        where = np.where(stack == nodes, nodes + labels.of_state[state], stack)
        yield Rows(bins.index(time_ns), where, thread, verdicts.divide(cell, weight, system, delay), squared)


class _Verdicts:
    """The rules of ``attribution``, asked once for each cell."""

    def __init__(self, rule: Attribution) -> None:
        self._rule = rule
        self._verdict = np.zeros(1 << 16, np.int8)
        self._known = np.zeros(1 << 16, np.bool_)
        self._kernel = np.zeros(1 << 16, np.bool_)
        self._delayed = np.zeros(1 << 16, np.bool_)
        self._state = np.zeros(1 << 16, np.int64)

    def states(self, cell: NDArray[np.integer]) -> Ids:
        """The stack state of each row."""
        self._learn(cell)
        return np.asarray(self._state[cell], np.int64)

    def divide(
        self, cell: NDArray[np.integer], weight: Values, system: Values | None, delay: Values | None
    ) -> dict[str, Values]:
        """The weights of rows by whose time it is."""
        kernel = np.zeros(len(weight)) if system is None else np.where(self._kernel[cell], system, 0.0)
        rest = weight - kernel
        verdict = self._verdict[cell]
        native = np.where(verdict == Verdict.NATIVE, rest, 0.0)
        unknown = np.where(verdict == Verdict.UNKNOWN, rest, 0.0)
        if self._delayed.any():
            main = self._delayed[cell]
            native = np.where(main, np.minimum(0.0 if delay is None else delay, rest), native)
            unknown = np.where(main, 0.0, unknown)
        return {"python": rest - native - unknown, "native": native, "kernel": kernel, "unknown": unknown}

    def _learn(self, cell: NDArray[np.integer]) -> None:
        seen = np.flatnonzero(np.bincount(cell, minlength=1) if len(cell) else np.zeros(1))
        new = seen[~self._known[seen]]
        if not len(new):
            return
        frame = pd.DataFrame(CpuReducer.columns_of(new))
        told = attribute(frame.assign(cpu_ns=1.0, system_ns=0.0, delay_ns=0.0), self._rule)
        self._verdict[new] = np.where(
            told["native_ns"] > 0, Verdict.NATIVE, np.where(told["unknown_ns"] > 0, Verdict.UNKNOWN, Verdict.PYTHON)
        )
        self._kernel[new] = frame["kernel_known"]
        self._state[new] = frame["stack_state"]
        if self._rule in (Attribution.AUTO, Attribution.DELAY):
            self._delayed[new] = frame["origin"] == SIGNAL
        self._known[new] = True


def wait_rows(
    recording: Recording,
    edges: Edges,
    labels: Labels,
    window: Window,
    bins: Bins,
    main: NDArray[np.bool_],
    threads: Mask | None,
) -> Iterator[Rows]:
    """The waits in a window (those for a processor left out), each shared out over the spans that it touches."""
    targets = [value.name for value in recording.specification.enums["target"]]
    nodes = recording.rows("stacks")
    columns = ["start_ns", "end_ns", "off_cpu_ns", "thread", "stack", "target", "stack_state"]
    for batch in recording.batches("waits", columns):
        start_ns, end_ns, thread = (batch.column(name).to_numpy() for name in ("start_ns", "end_ns", "thread"))
        thread = thread.astype(np.int64)
        wanted = (batch.column("target").to_numpy() != targets.index("cpu")) & (
            window.part(thread, start_ns, end_ns) > 0
        )
        if threads is not None:
            wanted &= threads[thread]
        state = np.minimum(batch.column("stack_state").to_numpy(), STATES - 1).astype(np.int64)
        state = np.where(state >= STARTING, STATES - 1, state)
        state = edges.mark_times(state, thread, start_ns, end_ns)
        stack = batch.column("stack").fill_null(nodes).to_numpy().astype(np.int64)
        place = np.where(stack == nodes, nodes + labels.of_state[state], stack)
        off_cpu = batch.column("off_cpu_ns").to_numpy().astype(np.float64)
        chosen = np.flatnonzero(wanted)
        first, last = start_ns[chosen], end_ns[chosen]
        if window.spans is not None:
            chosen, first, last = _pieces(chosen, thread[chosen], first, last, window.spans)
        row, number, shown_ns = _spread(first, last, window, bins)
        chosen = chosen[row]
        length = (end_ns - start_ns)[chosen]
        wait = off_cpu[chosen] * np.where(length > 0, shown_ns / np.maximum(length, 1), 1.0)
        weights = {"wait": wait, "main_wait": np.where(main[thread[chosen]], wait, 0.0)}
        yield Rows(number, place[chosen], thread[chosen], weights)


def _spread(start_ns: Ids, end_ns: Ids, window: Window, bins: Bins) -> tuple[Ids, Ids, Values]:
    """Row numbers, spans, and the nanoseconds of each row that lie in the span; moments outside of all are cut."""
    low, high = np.maximum(start_ns, window.start_ns), np.minimum(end_ns, window.end_ns)
    first, last = bins.index(low), bins.index(np.maximum(high - 1, low))
    repeats = last - first + 1
    row = np.repeat(np.arange(len(start_ns)), repeats)
    begun = np.cumsum(repeats) - repeats
    number = first[row] + np.arange(len(row)) - begun[row]
    left = np.where(number == first[row], low[row], bins.start_ns + number * bins.width_ns)
    right = np.where(number == last[row], high[row], bins.start_ns + (number + 1) * bins.width_ns)
    return row, number, np.maximum(right - left, 0.0)


def _pieces(row: Ids, thread: Ids, start_ns: Ids, end_ns: Ids, spans: Stretches) -> tuple[Ids, Ids, Ids]:
    """The pieces of rows that lie in ``spans``: row, start and end of each. A row without length stays as it is."""
    order = np.lexsort((start_ns, thread))
    order = order[(end_ns > start_ns)[order]]
    found = Stretches(thread[order], start_ns[order], end_ns[order], row[order]).within(spans)
    moment = end_ns <= start_ns
    return (
        np.concatenate([found.group, row[moment]]),
        np.concatenate([found.start_ns, start_ns[moment]]),
        np.concatenate([found.end_ns, end_ns[moment]]),
    )
