"""Memory of the processes as wholes: footprint and resident set over time, and the exact counters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tachograph.format.enumerations import DOMAINS, MemoryEvent

from ...recording.frame import Frame
from .counters import PYTHON, following, previous
from .curves import Curve, line_curve
from .heap import Heap
from .moments import first_at_top, footprint_at, highest
from .where import Where

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class MemoryFrames:
    """The frames of ``Memory``, under the same names."""

    footprint: Frame
    resident: Frame
    footprint_sum: Frame
    processes: Frame
    domains: Frame


@dataclass(frozen=True)
class Memory:
    """The processes' memory in the window. Bytes; seconds from the start of the recording; None is unknown.

    ``footprint`` and ``resident`` have the columns process, time_s, bytes: at most 100 points for each process, to be
    drawn as a line through them. ``footprint_sum`` has time_s, bytes: the sum of the footprints of the processes that
    live at a time; at most 100 points. ``processes`` has process, start_bytes, peak_bytes, peak_s, end_bytes, end_s,
    resident_peak_bytes, resident_peak_s, resident_end_bytes, minor_faults, major_faults, allocated_bytes, freed_bytes.
    ``domains`` has domain, python, allocated_bytes, freed_bytes: the exact counters.
    """

    start_bytes: float | None
    peak_bytes: float | None
    peak_s: float
    peak_inherited_bytes: float
    """Inherited memory of forked processes in ``peak_bytes``, counted again for each process."""
    end_bytes: float | None
    end_s: float
    resident_peak_bytes: float | None
    resident_peak_s: float | None
    """Moment of the largest resident sets together; ``live_at_resident_peak_bytes`` is what was held then."""
    resident_end_bytes: float | None
    where: Where | None
    """The division of what is resident; None where it was not recorded."""
    referrers: Frame | None
    """Chains that keep sampled blocks of the largest sites alive (``referrers.COLUMNS``); None: not searched."""
    frames: MemoryFrames
    rows: int
    """Rows of the table ``memory`` in the window."""
    threshold_rows: int
    """Those of them that were written because the threshold was crossed."""

    @cached_property
    def footprint(self) -> pd.DataFrame:
        """Footprint of each process over time."""
        return self.frames.footprint.pandas()

    @cached_property
    def resident(self) -> pd.DataFrame:
        """Resident set of each process over time."""
        return self.frames.resident.pandas()

    @cached_property
    def footprint_sum(self) -> pd.DataFrame:
        """Footprint of all processes together."""
        return self.frames.footprint_sum.pandas()

    @cached_property
    def processes(self) -> pd.DataFrame:
        """A row for each process."""
        return self.frames.processes.pandas()

    @cached_property
    def domains(self) -> pd.DataFrame:
        """A row for each domain of allocators."""
        return self.frames.domains.pandas()


def describe_memory(
    heap: Heap, threads: NDArray[np.int64], where: Where | None, referrers: Frame | None = None
) -> Memory:
    """The memory of the processes; ``threads`` has the number of threads of each."""
    counters = heap.counters
    inside = (counters.time_ns >= heap.start_ns) & (counters.time_ns <= heap.end_ns)
    before, left = counters.before(), heap.left_at_peak
    counted = heap.counted.tolist()
    flows = counters.since_start(counters.allocated)
    rows = [_process(heap, process, threads, before.get(process, np.nan), flows) for process in counted]
    processes = Frame.of_rows(rows, _COLUMNS)
    resident_ends = processes["resident_end_bytes"]
    resident_ends = resident_ends[~np.isnan(resident_ends)]
    allocated, freed = flows[inside].sum(axis=0), counters.freed[inside].sum(axis=0)
    return Memory(
        start_bytes=_known(heap.start.bytes),
        peak_bytes=_known(heap.peak.bytes),
        peak_s=_seconds(heap, heap.peak.time_ns),
        peak_inherited_bytes=min(float(left[heap.forked].sum()), heap.peak.bytes) if counted else 0.0,
        end_bytes=_known(heap.end.bytes),
        end_s=_seconds(heap, heap.end.time_ns),
        resident_peak_bytes=_known(heap.resident_peak.bytes),
        resident_peak_s=None if np.isnan(heap.resident_peak.bytes) else _seconds(heap, heap.resident_peak.time_ns),
        resident_end_bytes=float(resident_ends.sum()) if len(resident_ends) else None,
        where=where,
        referrers=referrers,
        frames=MemoryFrames(
            footprint=_frame({process: _footprint(heap, process) for process in counted}),
            resident=_frame({process: _resident(heap, process) for process in counted}),
            footprint_sum=Frame.of_rows(_sum_curve(heap), ("time_s", "bytes")),
            processes=processes,
            domains=Frame(
                {"domain": list(DOMAINS), "python": PYTHON, "allocated_bytes": allocated, "freed_bytes": freed}
            ),
        ),
        rows=int(inside.sum()),
        threshold_rows=int((inside & (counters.event == MemoryEvent.THRESHOLD)).sum()),
    )


def _sum_curve(heap: Heap) -> Curve:
    """The sum of the footprints, through the rows of all processes and through the peak."""
    counters = heap.counters
    rows = np.flatnonzero(~np.isnan(counters.footprint) & (counters.time_ns <= heap.end_ns))
    process, time_ns, held = counters.process[rows], counters.time_ns[rows], counters.footprint[rows]
    if not len(rows):
        return []
    last = previous(process)
    final = following(process) < 0
    gone = heap.gone_ns[process[final]]
    change = np.concatenate((held - np.where(last >= 0, held[last], 0.0), -held[final]))
    times = np.concatenate((time_ns, np.maximum(gone, time_ns[final] + 1)))
    order = np.argsort(times, kind="stable")
    times, sums = times[order], np.cumsum(change[order])
    # Where a process begins or ends the sum steps; between the rows of one it is a line.
    steps = np.flatnonzero(np.concatenate((last < 0, np.ones(int(final.sum()), np.bool_)))[order])
    x = np.concatenate((times, times[steps], [heap.peak.time_ns]))
    y = np.concatenate((sums, np.concatenate(([0.0], sums))[steps], [heap.peak.bytes]))
    rank = np.concatenate((np.full(len(times), 2), np.zeros(len(steps)), [1]))
    order = np.lexsort((rank, x))
    x, y = x[order].astype(np.float64), y[order]
    inside = (x >= heap.start_ns) & (x <= heap.end_ns)
    return line_curve(x[inside], y[inside], heap.zero_ns) if inside.any() else []


_COLUMNS = (
    "process",
    "start_bytes",
    "peak_bytes",
    "peak_s",
    "end_bytes",
    "end_s",
    "resident_peak_bytes",
    "resident_peak_s",
    "resident_end_bytes",
    "minor_faults",
    "major_faults",
    "allocated_bytes",
    "freed_bytes",
)


def _process(
    heap: Heap, process: int, threads: NDArray[np.int64], before: float, flows: NDArray[np.float64]
) -> tuple[object, ...]:
    """A row of ``Memory.processes``; ``before`` was held at first, ``flows`` was allocated, by row of the counters."""
    counters = heap.counters
    own = counters.of(process)
    peak = highest(counters.where(own), heap.held, heap.gone_ns, heap.start_ns, heap.end_ns, threads)
    end_ns = int(heap.ends_ns[process])
    mine = own[(counters.time_ns[own] >= heap.start_ns) & (counters.time_ns[own] <= heap.end_ns)]
    resident, time_ns = counters.resident[mine], counters.time_ns[mine]
    measured = ~np.isnan(resident)
    before_end = resident[measured & (time_ns <= end_ns)]
    faults = [values[mine][~np.isnan(values[mine])] for values in (counters.minor_faults, counters.major_faults)]
    return (
        process,
        footprint_at(counters, heap.held, process, heap.start_ns)
        if heap.lifetimes.start_ns[process] < heap.start_ns
        else before,
        peak.bytes,
        _seconds(heap, peak.time_ns),
        footprint_at(counters, heap.held, process, end_ns),
        _seconds(heap, end_ns),
        resident[measured].max() if measured.any() else np.nan,
        _seconds(heap, int(time_ns[measured][first_at_top(resident[measured])])) if measured.any() else np.nan,
        before_end[-1] if len(before_end) else np.nan,
        *(values[-1] if len(values) else np.nan for values in faults),
        flows[mine].sum(),
        counters.freed[mine].sum(),
    )


def _footprint(heap: Heap, process: int) -> Curve:
    """The footprint through the rows of a process, and through its peaks between them."""
    counters = heap.counters
    rows = counters.of(process)
    rows = rows[~np.isnan(counters.footprint[rows])]
    inside = (counters.time_ns[rows] >= heap.start_ns) & (counters.time_ns[rows] <= heap.end_ns)
    times, held = counters.time_ns[rows].astype(np.float64), counters.footprint[rows]
    before = np.concatenate((times[:1], times[:-1]))
    # Of a peak between two rows only its height is known; it is drawn in the middle, but for the highest.
    middle = (before + times) / 2
    tops = (
        inside
        & (before >= heap.start_ns)
        & (counters.peak[rows] > np.fmax(held, np.concatenate((held[:1], held[:-1]))))
    )
    highest_row = int(np.argmax(np.where(tops, counters.peak[rows], -1.0))) if tops.any() else -1
    if highest_row >= 0 and before[highest_row] <= heap.peak.time_ns <= times[highest_row]:
        middle[highest_row] = heap.peak.time_ns
    x = np.concatenate((middle[tops], times[inside]))
    y = np.concatenate((counters.peak[rows][tops], held[inside]))
    ends = [moment for moment in _bounds(heap, process) if len(times) and not inside.all()]
    x = np.concatenate((x, np.array(ends, np.float64)))
    y = np.concatenate(
        (y, np.array([footprint_at(counters, heap.held, process, moment) for moment in ends], np.float64))
    )
    order = np.argsort(x, kind="stable")
    return line_curve(x[order], y[order], heap.zero_ns)


def _bounds(heap: Heap, process: int) -> tuple[int, int]:
    """Between which moments of the window a process lived."""
    start_ns, end_ns = int(heap.lifetimes.start_ns[process]), int(heap.gone_ns[process])
    return max(heap.start_ns, start_ns), min(heap.end_ns, end_ns)


def _resident(heap: Heap, process: int) -> Curve:
    """The resident set of a process."""
    counters = heap.counters
    rows = counters.of(process)
    rows = rows[(counters.time_ns[rows] >= heap.start_ns) & (counters.time_ns[rows] <= heap.end_ns)]
    rows = rows[~np.isnan(counters.resident[rows])]
    return line_curve(counters.time_ns[rows].astype(np.float64), counters.resident[rows], heap.zero_ns)


def _frame(curves: dict[int, Curve]) -> Frame:
    rows = [(process, time, size) for process, curve in curves.items() for time, size in curve]
    return Frame.of_rows(rows, ("process", "time_s", "bytes"))


def _seconds(heap: Heap, moment_ns: int) -> float:
    return (moment_ns - heap.zero_ns) / 1e9


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
