"""Memory of the processes as wholes: footprint and resident set over time, and the exact books."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .books import DOMAINS, PYTHON, THRESHOLD
from .curves import Curve, line_curve
from .heap import Heap
from .moments import footprint_at, highest


@dataclass(frozen=True)
class Memory:
    """The processes' memory in the window. Bytes; seconds from the start of the recording; None is unknown.

    ``footprint`` and ``resident`` have the columns process, time_s, bytes: at most 100 points for each process, to be
    drawn as a line through them. ``processes`` has process, start_bytes, peak_bytes, peak_s, end_bytes, end_s,
    resident_peak_bytes, resident_end_bytes, minor_faults, major_faults, allocated_bytes, freed_bytes. ``domains`` has
    domain, python, allocated_bytes, freed_bytes: the exact books.
    """

    start_bytes: float | None
    peak_bytes: float | None
    peak_s: float
    end_bytes: float | None
    end_s: float
    resident_peak_bytes: float | None
    resident_end_bytes: float | None
    footprint: pd.DataFrame
    resident: pd.DataFrame
    processes: pd.DataFrame
    domains: pd.DataFrame
    rows: int
    """Rows of the table ``memory`` in the window."""
    threshold_rows: int
    """Those of them that were written because the threshold was crossed."""


def describe_memory(heap: Heap, threads: NDArray[np.int64]) -> Memory:
    """The memory of the processes; ``threads`` has the number of threads of each."""
    books = heap.books
    inside = (books.time_ns >= heap.start_ns) & (books.time_ns <= heap.end_ns)
    rows = [_process(heap, process, inside, threads) for process in np.unique(books.process).tolist()]
    processes = pd.DataFrame(rows, columns=list(_COLUMNS))
    peaks, ends = (processes[name].dropna() for name in ("resident_peak_bytes", "resident_end_bytes"))
    allocated, freed = books.since_start(books.allocated)[inside].sum(axis=0), books.freed[inside].sum(axis=0)
    return Memory(
        start_bytes=_known(heap.start.bytes),
        peak_bytes=_known(heap.peak.bytes),
        peak_s=_seconds(heap, heap.peak.time_ns),
        end_bytes=_known(heap.end.bytes),
        end_s=_seconds(heap, heap.end.time_ns),
        resident_peak_bytes=float(peaks.sum()) if len(peaks) else None,
        resident_end_bytes=float(ends.sum()) if len(ends) else None,
        footprint=_frame({process: _footprint(heap, process) for process in processes["process"].tolist()}),
        resident=_frame({process: _resident(heap, process) for process in processes["process"].tolist()}),
        processes=processes,
        domains=pd.DataFrame({"domain": DOMAINS, "python": PYTHON, "allocated_bytes": allocated, "freed_bytes": freed}),
        rows=int(inside.sum()),
        threshold_rows=int((inside & (books.event == THRESHOLD)).sum()),
    )


_COLUMNS = (
    "process",
    "start_bytes",
    "peak_bytes",
    "peak_s",
    "end_bytes",
    "end_s",
    "resident_peak_bytes",
    "resident_end_bytes",
    "minor_faults",
    "major_faults",
    "allocated_bytes",
    "freed_bytes",
)


def _process(heap: Heap, process: int, inside: NDArray[np.bool_], threads: NDArray[np.int64]) -> tuple[object, ...]:
    books = heap.books
    own = books.process == process
    mine = own & inside
    peak = highest(books.where(own), heap.held, heap.start_ns, heap.end_ns, threads)
    end_ns = int(heap.ends_ns[process])
    resident = books.resident[mine & ~np.isnan(books.resident)]
    before_end = books.resident[mine & ~np.isnan(books.resident) & (books.time_ns <= end_ns)]
    faults = [values[mine & ~np.isnan(values)] for values in (books.minor_faults, books.major_faults)]
    return (
        process,
        footprint_at(books, heap.held, process, heap.start_ns)
        if heap.start_ns > heap.zero_ns
        else books.before().get(process, np.nan),
        peak.bytes,
        _seconds(heap, peak.time_ns),
        footprint_at(books, heap.held, process, end_ns),
        _seconds(heap, end_ns),
        resident.max() if len(resident) else np.nan,
        before_end[-1] if len(before_end) else np.nan,
        *(values[-1] if len(values) else np.nan for values in faults),
        books.since_start(books.allocated)[mine].sum(),
        books.freed[mine].sum(),
    )


def _footprint(heap: Heap, process: int) -> Curve:
    """The footprint through the rows of a process, and through its peaks between them."""
    books = heap.books
    rows = books.of(process)
    rows = rows[~np.isnan(books.footprint[rows])]
    inside = (books.time_ns[rows] >= heap.start_ns) & (books.time_ns[rows] <= heap.end_ns)
    times, held = books.time_ns[rows].astype(np.float64), books.footprint[rows]
    before = np.concatenate((times[:1], times[:-1]))
    # Of a peak between two rows only its height is known; it is drawn in the middle, but for the highest.
    middle = (before + times) / 2
    tops = (
        inside & (before >= heap.start_ns) & (books.peak[rows] > np.fmax(held, np.concatenate((held[:1], held[:-1]))))
    )
    highest_row = int(np.argmax(np.where(tops, books.peak[rows], -1.0))) if tops.any() else -1
    if highest_row >= 0 and before[highest_row] <= heap.peak.time_ns <= times[highest_row]:
        middle[highest_row] = heap.peak.time_ns
    x = np.concatenate((middle[tops], times[inside]))
    y = np.concatenate((books.peak[rows][tops], held[inside]))
    ends = [moment for moment in (heap.start_ns, heap.end_ns) if len(times) and not inside.all()]
    x = np.concatenate((x, np.array(ends, np.float64)))
    y = np.concatenate((y, np.array([footprint_at(books, heap.held, process, moment) for moment in ends], np.float64)))
    order = np.argsort(x, kind="stable")
    return line_curve(x[order], y[order], heap.zero_ns)


def _resident(heap: Heap, process: int) -> Curve:
    """The resident set of a process."""
    books = heap.books
    rows = books.of(process)
    rows = rows[(books.time_ns[rows] >= heap.start_ns) & (books.time_ns[rows] <= heap.end_ns)]
    rows = rows[~np.isnan(books.resident[rows])]
    return line_curve(books.time_ns[rows].astype(np.float64), books.resident[rows], heap.zero_ns)


def _frame(curves: dict[int, Curve]) -> pd.DataFrame:
    rows = [(process, time, size) for process, curve in curves.items() for time, size in curve]
    return pd.DataFrame(rows, columns=["process", "time_s", "bytes"])


def _seconds(heap: Heap, moment_ns: int) -> float:
    return (moment_ns - heap.zero_ns) / 1e9


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
