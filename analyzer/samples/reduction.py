"""Reduces the long tables to facts: one row for each distinct combination of what attribution looks at.

This is the only place that sees every row. It streams, in Arrow and numpy, so time grows with the number of rows and
memory with the number of distinct stacks. It draws no conclusions: the rules of ``attribution`` work on what it
returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tachograph.format import FormatError

from ..recording.compat.opcodes import classes_of
from ..recording.interpreter_phases import STARTING, Edges, find_edges
from ..recording.opened import Recording
from ..recording.prefetch import prefetched
from ..recording.release import release_unused
from ..recording.time_window import Window
from .accumulate import Accumulator, Key, Weights
from .attribution import SIGNAL, SIGNAL_THREAD
from .native_frames import frame_classes, gpu_frames
from .weights import weighted_batches

MAX_WEIGHT_NS = 1 << 53
"""Weights beyond this (104 days in one sample) are refused; below it their sums are exact enough in floating point."""

# Cells: the small columns, packed. The product is the number of cells.
_STATES, _ORIGINS, _KERNEL, _OPCODES, _FRAMES = 9, 8, 2, 5, 7
_KINDS = ("world", "gpu", "cpu")
"""What a thread waited for, as far as it matters here."""

Rows = tuple[Key, NDArray[np.uint16], tuple[Weights, Weights | None, Weights | None, Weights]]
"""Rows of ``cpu``: places, cells, and the weights cpu_ns, system_ns, delay_ns (None: all zero) and weight_squared."""

_CELLS = _STATES * _ORIGINS * _KERNEL * _OPCODES * _FRAMES


@dataclass(frozen=True, slots=True)
class Facts:
    """What the long tables say, reduced.

    ``cpu`` has the columns stack, thread (ids; stack -1 is none), frame_class, opcode_class, origin, stack_state,
    kernel_known, samples, cpu_ns, system_ns, delay_ns, weight_squared. ``waits`` has stack, thread, stack_state,
    kind (world, gpu, cpu), spans, wait_ns, or is None where waiting was not recorded.
    """

    cpu: pd.DataFrame
    waits: pd.DataFrame | None


def reduce_recording(recording: Recording, window: Window) -> Facts:
    """The facts of the part of a recording that lies in ``window``."""
    edges = find_edges(recording)
    waits = reduce_waits(recording, window, edges) if waits_recorded(recording) else None
    cpu = reduce_cpu(recording, window, edges)
    release_unused()
    return Facts(cpu, waits)


def waits_recorded(recording: Recording) -> bool:
    """Whether waiting was recorded at all: if not, it is unknown, and not zero."""
    samplers = set(recording.table("processes").column("sampler").to_pylist())
    return recording.rows("waits") > 0 or (
        recording.manifest.parameters.get("waits") is True and samplers <= {"native", None}
    )


def signals(recording: Recording) -> bool:
    """Whether there may be rows of the signal sampler; a process without threads has no rows of any."""
    samplers = np.array(recording.table("processes").column("sampler").to_pylist(), object)
    sampled = np.unique(recording.table("threads").column("process").to_numpy())
    return any(sampler != "native" for sampler in samplers[sampled].tolist())


def reduce_cpu(recording: Recording, window: Window, edges: Edges) -> pd.DataFrame:
    """The CPU samples, reduced."""
    reducer = CpuReducer(recording, edges)
    columns = ["thread", "stack", "native_frame", "cpu_ns", "system_ns", "opcode", "origin", "stack_state"]
    if reducer.has_signals or not window.whole:
        columns.append("time_ns")
    batches: Iterable[pa.RecordBatch] = prefetched(weighted_batches(recording, columns))
    if reducer.has_signals:
        batches = whole_ticks(batches)
    for batch in batches:
        reducer.reduce(batch, window)
    return reducer.facts()


def whole_ticks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that never end in the middle of a run of equal ``time_ns``."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        rows = pa.concat_batches([held, batch]) if held is not None else batch
        times = rows.column("time_ns").to_numpy()
        cut = int(np.searchsorted(times, times[-1])) if len(times) else 0
        if cut:
            yield rows.slice(0, cut)
        held = rows.slice(cut)
    if held is not None and held.num_rows:
        yield held


def share_ticks(
    time_ns: NDArray[np.int64], process: NDArray[np.int64], elapsed_ns: NDArray[np.float64], interval_ns: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weight and delay of rows of the signal sampler, each of which carries the elapsed time of its whole tick.

    The elapsed virtual time T is shared out evenly among the threads that were executing, so that the total is the
    time that passed; the delay is the same share of T - q (Scalene 2023, section 2.1 and 2.2). T below q has no delay.
    """
    order = np.lexsort((process, time_ns))
    changed = (np.diff(time_ns[order]) != 0) | (np.diff(process[order]) != 0)
    tick = np.empty(len(order), np.int64)
    tick[order] = np.concatenate(([0], np.cumsum(changed))) if len(order) else []
    rows = np.bincount(tick)[tick]
    return elapsed_ns / rows, np.maximum(elapsed_ns - interval_ns, 0.0) / rows


class CpuReducer:
    """Adds up batches of samples by stack, thread and classes."""

    def __init__(self, recording: Recording, edges: Edges) -> None:
        processes, threads = recording.table("processes"), recording.table("threads")
        frames = frame_classes(recording.table("native_frames"), recording.table("modules"))
        self._frame_cells = frames.astype(np.uint16) * (_OPCODES * _KERNEL * _ORIGINS * _STATES)
        versions = processes.column("python_version").to_pylist()
        opcodes = np.stack([classes_of(version) for version in versions] or [classes_of(None)])
        self._opcode_cells = opcodes.astype(np.uint16) * (_KERNEL * _ORIGINS * _STATES)
        self._process = threads.column("process").to_numpy().astype(np.int64)
        self._threads = max(threads.num_rows, 1)
        self._stacks = recording.rows("stacks")
        self._interval = recording.interval_ns
        self.has_signals = signals(recording)
        """Whether there may be rows of the signal sampler, whose time is needed to tell one tick from the next."""
        self._edges = edges
        self._row = 0
        self._sums = Accumulator(
            (self._stacks + 1) * self._threads, _CELLS, ("cpu_ns", "system_ns", "delay_ns", "weight_squared")
        )

    def reduce(self, batch: pa.RecordBatch, window: Window) -> None:
        """Adds one batch."""
        self._sums.add(*self.decode(batch, window))

    def decode(self, batch: pa.RecordBatch, window: Window) -> Rows:
        """The rows of a batch that lie in the window, as places, cells and weights."""
        thread = batch.column("thread").to_numpy()
        state = self._edges.mark_rows(_states(batch.column("stack_state")), thread, self._row)
        self._row += batch.num_rows
        weight = _weights(batch.column("cpu_ns"), "cpu", "cpu_ns")
        # The rows of one signal are one observation, however many threads share its time.
        observed = weight.copy() if self.has_signals else weight
        delay = self._share(batch, thread, weight) if self.has_signals else None
        if not window.whole:
            inside = window.selects(thread, batch.column("time_ns").to_numpy())
            state = state[inside]
            weight, observed = weight[inside], observed[inside]
            delay = None if delay is None else delay[inside]
            batch = batch.filter(pa.array(inside))
            thread = batch.column("thread").to_numpy()
        system = batch.column("system_ns")
        system_ns = _weights(system.fill_null(0) if system.null_count else system, "cpu", "system_ns")
        np.minimum(system_ns, weight, out=system_ns)
        cell = np.take(self._frame_cells, _filled(batch.column("native_frame"), len(self._frame_cells) - 1))
        cell += self._opcodes(thread, _filled(batch.column("opcode"), 0))
        cell += _scaled(
            system.is_valid().to_numpy(zero_copy_only=False) if system.null_count else True, _ORIGINS * _STATES
        )
        cell += _scaled(_small(batch.column("origin"), _ORIGINS), _STATES)
        cell += _scaled(state, 1)
        place = np.multiply(_filled(batch.column("stack"), self._stacks), self._threads, dtype=np.int64)
        place += thread
        return place, cell, (weight, system_ns if system_ns.any() else None, delay, weight * observed)

    def facts(self) -> pd.DataFrame:
        """The sums, with the keys taken apart again."""
        place, cell, sums = self._sums.sums()
        stack, thread = np.divmod(place, self._threads)
        frame = pd.DataFrame({"stack": np.where(stack == self._stacks, -1, stack), "thread": thread})
        for name, values in self.columns_of(cell).items():
            frame[name] = values
        frame["samples"] = sums.pop("count").astype(np.int64)
        return frame.assign(**sums)

    @staticmethod
    def columns_of(cell: NDArray[np.integer]) -> dict[str, NDArray[np.integer | np.bool_]]:
        """The small columns of which cells are made."""
        columns: dict[str, NDArray[np.integer | np.bool_]] = {}
        for name, size in (
            ("stack_state", _STATES),
            ("origin", _ORIGINS),
            ("kernel_known", _KERNEL),
            ("opcode_class", _OPCODES),
            ("frame_class", _FRAMES),
        ):
            cell, columns[name] = np.divmod(cell, size)
        columns["kernel_known"] = columns["kernel_known"].astype(np.bool_)
        return columns

    def _opcodes(self, thread: NDArray[np.integer], opcode: NDArray[np.integer]) -> NDArray[np.uint16]:
        """The opcode's part of the cells; its meaning depends on the version of the thread's interpreter."""
        if len(self._opcode_cells) == 1:
            return np.take(self._opcode_cells[0], opcode)
        cells: NDArray[np.uint16] = self._opcode_cells[self._process[thread], opcode]
        return cells

    def _share(
        self, batch: pa.RecordBatch, thread: NDArray[np.integer], weight: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Puts the shared weight of the signal sampler's rows into their places, and returns the delays of all rows."""
        origin = batch.column("origin").to_numpy()
        signal = (origin == SIGNAL) | (origin == SIGNAL_THREAD)
        if not signal.any():
            return None
        if self._interval is None:
            raise FormatError("manifest.json: parameters.interval_ns is missing, and the signal sampler's rows need it")
        delay = np.zeros(len(weight))
        time_ns = batch.column("time_ns").to_numpy()[signal]
        process = self._process[thread[signal]]
        weight[signal], delay[signal] = share_ticks(time_ns, process, weight[signal], self._interval)
        return delay


def reduce_waits(recording: Recording, window: Window, edges: Edges) -> pd.DataFrame:
    """The waits, reduced; spans that reach out of the window count with the part that lies in it."""
    targets = [value.name for value in recording.specification.enums["target"]]
    gpu = gpu_frames(recording.table("native_frames"), recording.table("modules"))
    threads, stacks = max(recording.rows("threads"), 1), recording.rows("stacks")
    columns = ["start_ns", "end_ns", "off_cpu_ns", "thread", "stack", "native_frame", "target", "stack_state"]
    sums = Accumulator((stacks + 1) * threads, len(_KINDS) * _STATES, ("wait_ns",))
    for batch in recording.batches("waits", columns):
        start_ns, end_ns = (batch.column(name).to_numpy() for name in ("start_ns", "end_ns"))
        thread, target = (batch.column(name).to_numpy() for name in ("thread", "target"))
        part = window.part(thread, start_ns, end_ns)
        place = np.multiply(_filled(batch.column("stack"), stacks), threads, dtype=np.int64)
        place += thread
        in_driver = np.take(gpu, _filled(batch.column("native_frame"), len(gpu) - 1))
        kind = np.where(in_driver | (target == targets.index("gpu")), _KINDS.index("gpu"), _KINDS.index("world"))
        kind[target == targets.index("cpu")] = _KINDS.index("cpu")
        state = edges.mark_times(_states(batch.column("stack_state")), thread, start_ns, end_ns)
        cell = kind * _STATES + state
        wait = _weights(batch.column("off_cpu_ns"), "waits", "off_cpu_ns") * part
        inside = part > 0
        sums.add(place[inside], cell[inside], (wait[inside],))
    place, cell, found = sums.sums()
    stack, thread = np.divmod(place, threads)
    return pd.DataFrame(
        {
            "stack": np.where(stack == stacks, -1, stack),
            "thread": thread,
            "stack_state": cell % _STATES,
            "kind": np.array(_KINDS, object)[cell // _STATES],
            "spans": found["count"].astype(np.int64),
            "wait_ns": found["wait_ns"],
        }
    )


def _weights(values: pa.Array, table: str, column: str) -> NDArray[np.float64]:
    """Nanoseconds as floating point; negative and absurd ones are errors of the recording."""
    if len(values):
        extremes = pc.min_max(values).as_py()
        if extremes["min"] < 0 or extremes["max"] > MAX_WEIGHT_NS:
            worst = extremes["min"] if extremes["min"] < 0 else extremes["max"]
            raise FormatError(f"table {table}, column {column}: {worst} ns cannot be true")
    return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)


def _filled(ids: pa.Array, otherwise: int) -> NDArray[np.integer]:
    """Ids as an index, with ``otherwise`` in place of null."""
    result: NDArray[np.integer] = (ids.fill_null(otherwise) if ids.null_count else ids).to_numpy()
    return result


def _states(values: pa.Array) -> NDArray[np.integer]:
    """Stack states; those that this version does not know count as the last, behind the analyzer's own."""
    states: NDArray[np.integer] = values.to_numpy()
    return np.where(states >= STARTING, _STATES - 1, states) if len(states) and states.max() >= STARTING else states


def _small(values: pa.Array, size: int) -> NDArray[np.integer]:
    """A small enumeration; values that this version does not know count as the last."""
    small: NDArray[np.integer] = np.minimum(values.to_numpy(), size - 1)
    return small


def _scaled(values: NDArray[np.integer] | bool, factor: int) -> NDArray[np.uint16] | np.uint16:
    """Values times a factor, as part of cells; one number if they are all equal, which they mostly are."""
    if isinstance(values, bool):
        return np.uint16(values * factor)
    if len(values) and values.min() == values.max():
        return np.uint16(int(values[0]) * factor)
    return values.astype(np.uint16) * np.uint16(factor)
