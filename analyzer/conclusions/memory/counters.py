"""The exact memory counters of each process: the rows of the table ``memory``, read whole, because they are few.

``Members``, ``following`` and ``previous`` find the rows of a process and their order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import distinct, floats, ids, numbers
from tachograph.format.enumerations import DOMAINS, Domain, MemoryEvent

from ...recording.frame import take_rows
from ...recording.opened import Recording


class Members:
    """The rows of each process, in order; found once for all, because there may be thousands of processes."""

    def __init__(self, process: NDArray[np.integer]) -> None:
        self._order = np.argsort(process, kind="stable")
        self._sorted = process[self._order]

    def of(self, process: int) -> NDArray[np.int64]:
        """The rows of a process."""
        first, last = np.searchsorted(self._sorted, (process, process + 1))
        return self._order[first:last]


def following(process: NDArray[np.integer]) -> NDArray[np.int64]:
    """The next row of the same process for each row, -1 for the last."""
    order = np.argsort(process, kind="stable")
    after = np.full(len(process), -1, np.int64)
    same = process[order][1:] == process[order][:-1]
    after[order[:-1][same]] = order[1:][same]
    return after


def previous(process: NDArray[np.int64]) -> NDArray[np.int64]:
    """The previous row of the same process for each row, -1 for the first."""
    after = following(process)
    before = np.full(len(process), -1, np.int64)
    followed = np.flatnonzero(after >= 0)
    before[after[followed]] = followed
    return before


PYTHON = np.isin(list(Domain), (Domain.RAW, Domain.MEM, Domain.OBJ))
"""True for the domains that are Python's."""

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Counters:
    """One entry per row of ``memory`` in every array, in the order of time. NaN and -1 stand for unknown."""

    time_ns: Ids
    process: Ids
    thread: Ids
    event: Ids
    footprint: Floats
    peak: Floats
    allocated: Floats
    """Bytes since the process's previous row, rows by domains; those of a start row were held before recording."""
    freed: Floats
    resident: Floats
    minor_faults: Floats
    major_faults: Floats
    stack: Ids
    kept: Ids
    """``kept_frames``."""

    def __len__(self) -> int:
        return len(self.time_ns)

    @cached_property
    def _members(self) -> Members:
        return Members(self.process)

    def of(self, process: int) -> Ids:
        """The rows of a process."""
        return self._members.of(process)

    def where(self, rows: NDArray[np.bool_] | Ids) -> Counters:
        """Only these rows: a mask, or their numbers."""
        return take_rows(self, rows)

    def since_start(self, flows: Floats) -> Floats:
        """``flows`` without the start rows, whose bytes were held already."""
        return np.where((self.event == MemoryEvent.START)[:, None], 0.0, flows)

    def with_most_resident(self, most: Floats) -> Counters:
        """The same rows, of which one of each process has its largest resident set, as the kernel counted it.

        ``most`` are bytes by process, NaN where they are not known. Resident sets are read four times a second; what
        was higher in between was so at an unknown time. It is put where the footprint was highest, unless a resident
        set that was read is higher than that.
        """
        resident = self.resident.copy()
        processes = distinct(self.process)
        for process in processes[~np.isnan(most[processes])].tolist():
            rows = self.of(process)
            read, held = np.nan_to_num(resident[rows], nan=-1.0), np.nan_to_num(self.footprint[rows], nan=-1.0)
            if most[process] > read.max():
                resident[rows[np.argmax(held if held.max() > read.max() else read)]] = most[process]
        return replace(self, resident=resident)

    def before(self) -> dict[int, float]:
        """Bytes that each process held when recording began; 0 where that is unknown."""
        rows = np.flatnonzero(self.event == MemoryEvent.START)
        held: dict[int, float] = {}
        for process, allocated in zip(self.process[rows].tolist(), self.allocated[rows].sum(axis=1), strict=True):
            held.setdefault(process, float(allocated))
        return held


def read_counters(recording: Recording, processes: NDArray[np.bool_] | None = None) -> Counters:
    """Reads the table ``memory``; of some processes only, where ``processes`` says which."""
    flows = [f"{domain}_{what}_bytes" for what in ("allocated", "freed") for domain in DOMAINS]
    places = ["process", "thread", "stack", "kept_frames"]
    amounts = ["footprint_bytes", "peak_bytes", "resident_bytes", "minor_faults", "major_faults", *flows]
    columns = ["time_ns", "event", *places, *amounts]
    batches = list(recording.batches("memory", columns))
    schema = pa.schema([recording.specification.tables["memory"].schema.field(name) for name in columns])
    rows = pa.Table.from_batches(batches, schema)
    order = np.argsort(numbers(rows.column("time_ns")), kind="stable")

    def number(name: str) -> Ids:
        return ids(rows.column(name))[order]

    def amount(name: str) -> Floats:
        return floats(rows.column(name))[order]

    half = len(DOMAINS)
    counters = Counters(
        time_ns=number("time_ns"),
        process=number("process"),
        thread=number("thread"),
        event=number("event"),
        footprint=amount("footprint_bytes"),
        peak=amount("peak_bytes"),
        allocated=np.column_stack([amount(name) for name in flows[:half]]),
        freed=np.column_stack([amount(name) for name in flows[half:]]),
        resident=amount("resident_bytes"),
        minor_faults=amount("minor_faults"),
        major_faults=amount("major_faults"),
        stack=number("stack"),
        kept=number("kept_frames"),
    )
    return counters if processes is None else counters.where(processes[counters.process])
