"""Reduces the sample stream to sums: one row per combination of stack, thread and attribution cell.

From these rows ``sums_by`` makes sums by node of the call tree, line, function, file or thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..recording.call_tree import NOTHING
from ..recording.frame import Frame
from ..statistics.grouped_sums import summed
from .attribution import CELLS, STATES, unpacked
from .groups import COLLECTING_UNKNOWN, Keys, Numbers, Totals
from .stream import CpuBatch, Stream, WaitBatch
from .weights import REASONS

_KINDS = ("world", "gpu", "cpu")
"""Names of the objects of waiting, in the order of ``stream.WORLD``, GPU and CPU."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Sums of the samples of a question.

    ``cpu`` has the columns stack, thread (ids; stack -1 is none), frame_class, opcode_class, origin, stack_state,
    kernel_known, samples, cpu_ns, and the parts by the rule: python_ns, native_ns, kernel_ns, unknown_ns. Where the
    kernel's part was not recorded kernel_ns is 0 and the others hold all of the time. ``weight_squared`` is that of all
    samples (``CpuBatch.squared``). ``waits`` has stack, thread, stack_state, kind (world, gpu, cpu), reason
    (``wait_reasons``), spans, wait_ns, or is None where waiting was not recorded. ``collections_known`` says whether
    any sample tells if it was taken in a garbage collection.
    """

    cpu: Frame
    collections_known: bool
    weight_squared: float
    waits: Frame | None


class Reduction:
    """The sink that makes ``Facts``."""

    times = False

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._threads = max(len(stream.recording.all_threads), 1)
        sizes = {"stack": stream.nodes + 1, "thread": self._threads, "reason": len(REASONS), "kind": len(_KINDS)}
        self._wait_keys = Keys({**sizes, "stack_state": STATES})
        self._waits = Totals(("wait_ns",))

    def cpu(self, batch: CpuBatch) -> None:
        """CPU samples are added up by group."""

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits."""
        columns = {"stack": batch.stack, "thread": batch.thread, "reason": batch.reason, "kind": batch.kind}
        number = self._wait_keys.of({**columns, "stack_state": batch.state})
        self._waits.add(number, len(self._wait_keys), {"wait_ns": batch.weight_ns})

    def facts(self) -> Facts:
        """The sums so far."""
        waits = self._wait_facts() if self._stream.waits_known else None
        collections_known = bool((self._stream.groups.columns["collecting"] != COLLECTING_UNKNOWN).any())
        return Facts(self._cpu_facts(), collections_known, self._stream.sums.weight_squared, waits)

    def _cpu_facts(self) -> Frame:
        groups, totals = self._stream.groups, self._stream.sums.totals
        place = groups.columns["stack"] * self._threads + groups.columns["thread"]
        key, number = np.unique(place * CELLS + groups.cell, return_inverse=True)
        place, cell = np.divmod(key, CELLS)
        sums = {name: summed(number, totals[name], len(key)) for name in ("count", "cpu_ns", "system_ns", "delay_ns")}
        parts = self._stream.division.parts(cell, sums["cpu_ns"], sums["system_ns"], sums["delay_ns"])
        stack, thread = np.divmod(place, self._threads)
        return Frame(
            {
                "stack": stack,
                "thread": thread,
                **unpacked(cell),
                "samples": sums["count"].astype(np.int64),
                "cpu_ns": sums["cpu_ns"],
                **{f"{name}_ns": values for name, values in parts._asdict().items()},
            }
        )

    def _wait_facts(self) -> Frame:
        columns = self._wait_keys.columns()
        return Frame(
            {
                "stack": np.where(columns["stack"] == self._stream.nodes, NOTHING, columns["stack"]),
                "thread": columns["thread"],
                "stack_state": columns["stack_state"],
                "kind": np.array(_KINDS, object)[columns["kind"]],
                "reason": columns["reason"],
                "spans": self._waits["count"].astype(np.int64),
                "wait_ns": self._waits["wait_ns"],
            }
        )


CPU_MEASURES = ("samples", "cpu_ns", "python_ns", "native_ns", "kernel_ns", "unknown_ns", "kernel_known_ns")
WAIT_MEASURES = ("wait_ns", "main_wait_ns", "gpu_wait_ns", "cpu_wait_ns")
MEASURES = (*CPU_MEASURES, *WAIT_MEASURES)
"""Sums in nanoseconds, but for ``samples``. ``kernel_known_ns`` is the CPU time whose kernel part was recorded."""

SECONDS = (
    "cpu_s",
    "python_s",
    "native_s",
    "kernel_s",
    "unknown_s",
    "wait_s",
    "main_wait_s",
    "gpu_wait_s",
    "cpu_wait_s",
)
"""The columns that frames show, in seconds."""


def prepared(cpu: Frame, waits: Frame | None, main_threads: NDArray[np.bool_]) -> Frame:
    """Attributed CPU facts and waits as one table: stack, thread, stack_state and the measures."""
    left = cpu.with_columns({"kernel_known_ns": np.where(cpu["kernel_known"], cpu["cpu_ns"], 0.0)})
    parts = [left]
    if waits is not None:
        main, wait_ns, kind = main_threads[waits["thread"]], waits["wait_ns"], waits["kind"]
        # Being ready to run while there is no free processor is not waiting for anything that the program asked for.
        world_ns = np.where(kind == "cpu", 0.0, wait_ns)
        measures = {
            "wait_ns": world_ns,
            "main_wait_ns": np.where(main, world_ns, 0.0),
            "gpu_wait_ns": np.where(kind == "gpu", world_ns, 0.0),
            "cpu_wait_ns": np.where(kind == "cpu", wait_ns, 0.0),
        }
        parts.append(waits.with_columns(measures))
    ids = {name: np.concatenate([part[name] for part in parts]) for name in ("stack", "thread", "stack_state")}
    sums = {
        name: np.concatenate([part[name] if name in part else np.zeros(len(part)) for part in parts])
        for name in MEASURES
    }
    return Frame({**ids, **sums})


def sums_by(rows: Frame, index: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """The measures of ``rows`` summed by ``index`` (0 .. size - 1), as an array of size by measures."""
    sums = np.zeros((size, len(MEASURES)))
    for column, name in enumerate(MEASURES):
        sums[:, column] = np.bincount(index, weights=rows[name], minlength=size)
    return sums


def seconds_of(sums: NDArray[np.float64], *, waits_known: bool, prefix: str = "") -> dict[str, NDArray[Any]]:
    """The measures by name in seconds (``samples`` as a count), NaN where something is not known.

    The kernel's part is unknown where no sample recorded it; Python and native are where no sample could be decided.
    """
    values = {name: sums[:, column] for column, name in enumerate(MEASURES)}
    has_cpu = values["cpu_ns"] > 0
    kernel_unknown = has_cpu & (values["kernel_known_ns"] <= 0)
    decided = values["python_ns"] + values["native_ns"]
    undecided = (decided <= 0) & (values["unknown_ns"] > 0)
    columns: dict[str, NDArray[Any]] = {f"{prefix}samples": np.rint(values["samples"]).astype(np.int64)}
    for name in SECONDS:
        seconds = values[name.removesuffix("_s") + "_ns"] / 1e9
        if name == "kernel_s":
            seconds = np.where(kernel_unknown, np.nan, seconds)
        elif name in ("python_s", "native_s"):
            seconds = np.where(undecided, np.nan, seconds)
        elif "wait" in name and not waits_known:
            seconds = np.full(len(seconds), np.nan)
        columns[prefix + name] = seconds
    return columns


def rank(columns: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], int]:
    """Numbers 0, 1 ... for equal rows of columns, in the order in which they first come, and how many there are."""
    group = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        _, group = np.unique(group * (high - low + 1) + (column - low), return_inverse=True)
    group, first = distinct(group)
    return group, len(first)


def distinct(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each key its number, in the order in which they first come, and for each number the place where it does."""
    numbers = Numbers()
    group = numbers.of(keys)
    first = np.zeros(len(numbers), np.int64)
    first[group[::-1]] = np.arange(len(group) - 1, -1, -1)
    return group, first
