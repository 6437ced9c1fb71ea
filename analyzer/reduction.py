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

from .compat.opcodes import classes_of
from .native import frame_classes, gpu_frames
from .recording import Recording
from .window import Window

MAX_WEIGHT_NS = 1 << 53
"""Weights beyond this (104 days in one sample) are refused; below it their sums are exact enough in floating point."""

_STATES = 8
_ORIGINS = 8
_KERNEL = 2
_OPCODES = 4
_FRAMES = 5
_CELLS = _STATES * _ORIGINS * _KERNEL * _OPCODES * _FRAMES
_COMPACT_ROWS = 4_000_000


@dataclass(frozen=True, slots=True)
class Facts:
    """What the long tables say, reduced.

    ``cpu`` has the columns stack, thread (ids; stack -1 is none), frame_class, opcode_class, origin, stack_state,
    kernel_known, samples, cpu_ns, system_ns, delay_ns, weight_squared. ``waits`` has stack, thread, stack_state,
    gpu, spans, wait_ns, or is None where waiting was not recorded.
    """

    cpu: pd.DataFrame
    waits: pd.DataFrame | None


def reduce_recording(recording: Recording, window: Window) -> Facts:
    """The facts of the part of a recording that lies in ``window``."""
    waits = reduce_waits(recording, window) if waits_recorded(recording) else None
    return Facts(reduce_cpu(recording, window), waits)


def waits_recorded(recording: Recording) -> bool:
    """Whether waiting was recorded at all: if not, it is unknown, and not zero."""
    samplers = set(recording.table("processes").column("sampler").to_pylist())
    return recording.rows("waits") > 0 or (
        recording.manifest.parameters.get("waits") is True and samplers == {"native"}
    )


def reduce_cpu(recording: Recording, window: Window) -> pd.DataFrame:
    """The CPU samples, reduced."""
    reducer = _CpuReducer(recording)
    columns = ["thread", "stack", "native_frame", "cpu_ns", "system_ns", "opcode", "origin", "stack_state"]
    if reducer.has_signals or not window.whole:
        columns.append("time_ns")
    batches: Iterable[pa.RecordBatch] = recording.batches("cpu", columns)
    if reducer.has_signals:
        batches = whole_ticks(batches)
    parts: list[pa.Table] = []
    pending = 0
    for batch in batches:
        part = reducer.reduce(batch, window)
        parts.append(part)
        pending += part.num_rows
        if pending > _COMPACT_ROWS:
            parts = [_sum_by_key(pa.concat_tables(parts), _CPU_SUMS)]
            pending = parts[0].num_rows
    return reducer.facts(_sum_by_key(pa.concat_tables(parts), _CPU_SUMS) if parts else _EMPTY_CPU)


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


_CPU_SUMS = ("samples", "cpu_ns", "system_ns", "delay_ns", "weight_squared")
_EMPTY_CPU = pa.table({"key": pa.array([], pa.int64()), **{name: pa.array([], pa.float64()) for name in _CPU_SUMS}})


def _sum_by_key(table: pa.Table, sums: Iterable[str]) -> pa.Table:
    grouped = table.group_by("key").aggregate([(name, "sum") for name in sums])
    return grouped.rename_columns([name.removesuffix("_sum") for name in grouped.column_names])


class _CpuReducer:
    """Turns batches of samples into sums by a key that packs (stack, thread, classes)."""

    def __init__(self, recording: Recording) -> None:
        processes, threads = recording.table("processes"), recording.table("threads")
        self._frame_classes = frame_classes(recording.table("native_frames"), recording.table("modules"))
        versions = processes.column("python_version").to_pylist()
        self._opcode_classes = np.stack([classes_of(version) for version in versions] or [classes_of(None)])
        self._process = threads.column("process").to_numpy().astype(np.int64)
        self._threads = max(threads.num_rows, 1)
        self._signal = np.array([sampler == "signal" for sampler in processes.column("sampler").to_pylist()], np.bool_)
        self._interval = recording.interval_ns or 0
        self.has_signals = bool(self._signal.any())
        if self.has_signals and not self._interval:
            raise FormatError("manifest.json: parameters.interval_ns is missing, which the signal sampler's rows need")

    def reduce(self, batch: pa.RecordBatch, window: Window) -> pa.Table:
        """The sums of one batch."""
        thread = batch.column("thread").to_numpy().astype(np.int64)
        process = self._process[thread] if len(self._opcode_classes) > 1 else np.zeros(1, np.int64)
        weight = _weights(batch.column("cpu_ns"), "cpu", "cpu_ns")
        delay = np.zeros(len(weight))
        if self.has_signals:
            every = np.broadcast_to(process, weight.shape)
            shared, delays = share_ticks(batch.column("time_ns").to_numpy(), every, weight, self._interval)
            weight = np.where(self._signal[every], shared, weight)
            delay = np.where(self._signal[every], delays, delay)
        system = batch.column("system_ns")
        known = system.is_valid().to_numpy(zero_copy_only=False) if system.null_count else np.ones(1, np.bool_)
        system_ns = _weights(system.fill_null(0) if system.null_count else system, "cpu", "system_ns")
        frame = _filled(batch.column("native_frame"), len(self._frame_classes) - 1)
        opcode = _filled(batch.column("opcode"), 0)
        cell = self._frame_classes[frame].astype(np.int64)
        cell *= _OPCODES
        cell += self._opcode_classes[process, opcode] if len(process) > 1 else self._opcode_classes[0][opcode]
        cell *= _KERNEL
        cell += known
        _add_small(cell, batch.column("origin"), _ORIGINS)
        _add_small(cell, batch.column("stack_state"), _STATES)
        key = _stacks(batch.column("stack"))
        key *= self._threads
        key += thread
        key *= _CELLS
        key += cell
        table = pa.table(
            {
                "key": key,
                "samples": np.ones(len(key)),
                "cpu_ns": weight,
                "system_ns": np.minimum(system_ns, weight),
                "delay_ns": delay,
                "weight_squared": weight * weight,
            }
        )
        if not window.whole:
            table = table.filter(pa.array(window.contains(batch.column("time_ns").to_numpy())))
        return _sum_by_key(table, _CPU_SUMS)

    def facts(self, sums: pa.Table) -> pd.DataFrame:
        """The key, taken apart again."""
        rest = sums.column("key").to_numpy().copy()
        columns: dict[str, NDArray[np.int64]] = {}
        for name, size in (
            ("stack_state", _STATES),
            ("origin", _ORIGINS),
            ("kernel_known", _KERNEL),
            ("opcode_class", _OPCODES),
            ("frame_class", _FRAMES),
            ("thread", self._threads),
        ):
            rest, columns[name] = np.divmod(rest, size)
        frame = pd.DataFrame(
            {"stack": rest - 1, **columns, **{name: sums.column(name).to_numpy() for name in _CPU_SUMS}}
        )
        frame["samples"] = frame["samples"].astype(np.int64)
        frame["kernel_known"] = frame["kernel_known"].astype(bool)
        return frame


_WAIT_SUMS = ("spans", "wait_ns")


def reduce_waits(recording: Recording, window: Window) -> pd.DataFrame:
    """The waits, reduced; spans that reach out of the window count with the part that lies in it."""
    gpu_target = [value.name for value in recording.specification.enums["target"]].index("gpu")
    gpu = gpu_frames(recording.table("native_frames"), recording.table("modules"))
    threads = max(recording.table("threads").num_rows, 1)
    columns = ["start_ns", "end_ns", "off_cpu_ns", "thread", "stack", "native_frame", "target", "stack_state"]
    parts: list[pa.Table] = []
    for batch in recording.batches("waits", columns):
        part = window.fraction(batch.column("start_ns").to_numpy(), batch.column("end_ns").to_numpy())
        key = _stacks(batch.column("stack")) * threads + batch.column("thread").to_numpy()
        key = key * 2 + (
            gpu[_filled(batch.column("native_frame"), len(gpu) - 1)] | (batch.column("target").to_numpy() == gpu_target)
        )
        _add_small(key, batch.column("stack_state"), _STATES)
        wait = _weights(batch.column("off_cpu_ns"), "waits", "off_cpu_ns")
        table = pa.table({"key": key, "spans": np.ones(len(key)), "wait_ns": wait * part}).filter(pa.array(part > 0))
        parts.append(_sum_by_key(table, _WAIT_SUMS))
    if not parts:
        names = ("stack", "thread", "stack_state", "gpu", *_WAIT_SUMS)
        return pd.DataFrame({name: pd.Series(dtype=np.float64 if name == "wait_ns" else np.int64) for name in names})
    sums = _sum_by_key(pa.concat_tables(parts), _WAIT_SUMS)
    rest, state = np.divmod(sums.column("key").to_numpy(), _STATES)
    rest, is_gpu = np.divmod(rest, 2)
    stack, thread = np.divmod(rest, threads)
    return pd.DataFrame(
        {
            "stack": stack - 1,
            "thread": thread,
            "stack_state": state,
            "gpu": is_gpu.astype(bool),
            "spans": sums.column("spans").to_numpy().astype(np.int64),
            "wait_ns": sums.column("wait_ns").to_numpy(),
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


def _stacks(ids: pa.Array) -> NDArray[np.int64]:
    """Stack ids + 1, 0 in place of null."""
    stacks = ids.to_numpy().astype(np.int64) if not ids.null_count else None
    if stacks is None:
        stacks = ids.cast(pa.int64()).fill_null(-1).to_numpy().copy()
    stacks += 1
    return stacks


def _add_small(key: NDArray[np.int64], values: pa.Array, size: int) -> None:
    """Packs a small enumeration into the key; values that this version does not know count as the last."""
    key *= size
    key += np.minimum(values.to_numpy(), size - 1)
