"""The tables of GPUs as values over time: how busy each GPU was, also by process, and its memory in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import distinct

from ...recording.opened import Recording

if TYPE_CHECKING:
    import pandas as pd


Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class Busy:
    """A share (0..1) over time, as running sums of busy nanoseconds, and of nanoseconds in which that is known."""

    time_ns: Ids
    busy_ns: Floats
    known_ns: Floats

    def between(self, start_ns: Ids, end_ns: Ids) -> tuple[Floats, Floats]:
        """Busy and known nanoseconds of spans of time."""
        if not len(self.time_ns):
            return np.zeros(len(start_ns)), np.zeros(len(start_ns))
        # Floating point has no room for a monotonic clock in nanoseconds.
        zero = self.time_ns[0]
        start, end, time = start_ns - zero, end_ns - zero, self.time_ns - zero
        first, second = (np.interp(end, time, sums) - np.interp(start, time, sums) for sums in self._sums)
        return first, second

    @property
    def _sums(self) -> tuple[Floats, Floats]:
        return self.busy_ns, self.known_ns


def busy_of(start_ns: Ids, end_ns: Ids, share: Floats) -> Busy:
    """``share`` of each span of time; where spans overlap the earlier one counts, and between them nothing is known."""
    order = np.argsort(end_ns, kind="stable")
    start, end, share = start_ns[order], end_ns[order], share[order]
    before = np.concatenate((start[:1], np.maximum.accumulate(end)[:-1]))
    start = np.minimum(np.maximum(start, before), end)
    length = (end - start).astype(np.float64)
    time = _in_turn(start, end)
    covered = _in_turn(np.cumsum(length) - length, np.cumsum(length))
    work = share * length
    busy = _in_turn(np.cumsum(work) - work, np.cumsum(work))
    return Busy(time, busy, covered)


def _in_turn(first: NDArray[Number], second: NDArray[Number]) -> NDArray[Number]:
    return np.column_stack([first, second]).ravel()


def with_edges(start_ns: Ids, end_ns: Ids, share: Floats) -> tuple[Ids, Ids, Floats]:
    """Spans that follow one another, in order of time, each cut in two where the share changed within it.

    The driver's spans are long (0.2 s on an H200), and a phase that ends within one would have its share smeared over
    what follows. Where a share lies strictly between those of the spans before and after, it is taken for one step
    from the first to the second, at the moment at which the two parts make this share: sums stay as they are, and a
    step between phases of more than two spans is where it was. All other spans are left whole.
    """
    before, after = share[:-2], share[2:]
    own, first, last = share[1:-1], start_ns[1:-1], end_ns[1:-1]
    joined = (first == end_ns[:-2]) & (last == start_ns[2:])
    steps = 1 + np.flatnonzero(joined & (np.minimum(before, after) < own) & (own < np.maximum(before, after)))
    if not len(steps):
        return start_ns, end_ns, share
    until = (share[steps] - share[steps + 1]) / (share[steps - 1] - share[steps + 1])
    # A span that stays whole has nothing behind its middle.
    middle, left, right = end_ns.copy(), share.copy(), share.copy()
    middle[steps] = start_ns[steps] + (until * (end_ns[steps] - start_ns[steps])).astype(np.int64)
    left[steps], right[steps] = share[steps - 1], share[steps + 1]
    return _in_turn(start_ns, middle), _in_turn(middle, end_ns), _in_turn(left, right)


def busy_or_idle(start_ns: Ids, end_ns: Ids, share: Floats, first_ns: int, last_ns: int) -> Busy:
    """As ``busy_of``, with nothing done between the spans, from ``first_ns`` to ``last_ns``."""
    busy = busy_of(start_ns, end_ns, share)
    time = np.concatenate(([first_ns], np.clip(busy.time_ns, first_ns, last_ns), [last_ns]))
    work = np.concatenate(([0.0], busy.busy_ns, busy.busy_ns[-1:] if len(busy.busy_ns) else [0.0]))
    return Busy(time, work, (time - first_ns).astype(np.float64))


def together(parts: Sequence[Busy]) -> Busy:
    """The sums of several: device-nanoseconds."""
    if len(parts) == 1:
        return parts[0]
    time = distinct(np.concatenate([part.time_ns for part in parts])) if parts else np.zeros(0, np.int64)
    start = np.full(len(time), time[0] if len(time) else 0, np.int64)
    busy, covered = np.zeros(len(time)), np.zeros(len(time))
    for part in parts:
        more_busy, more_known = part.between(start, time)
        busy += more_busy
        covered += more_known
    return Busy(time, busy, covered)


@dataclass(frozen=True)
class Held:
    """Bytes that hold from each moment until the next; before the first and after the last nothing is known."""

    time_ns: Ids
    bytes: Floats

    def at(self, time_ns: Ids) -> Floats:
        """Bytes held at moments, NaN where they are unknown."""
        if not len(self.time_ns):
            return np.full(len(time_ns), np.nan)
        place = np.searchsorted(self.time_ns, time_ns, "right") - 1
        covered = (place >= 0) & (time_ns <= self.time_ns[-1])
        return np.where(covered, self.bytes[np.maximum(place, 0)], np.nan)

    def most(self, start_ns: Ids, end_ns: Ids) -> Floats:
        """The most that was held in spans of time."""
        most = np.fmax(self.at(start_ns), self.at(end_ns))
        low, high = np.searchsorted(self.time_ns, start_ns, "right"), np.searchsorted(self.time_ns, end_ns, "right")
        inside = np.flatnonzero(high > low)
        if len(inside):
            edges = _in_turn(low[inside], high[inside])
            values = np.append(self.bytes, -np.inf)  # an edge may lie behind the last
            most[inside] = np.fmax(most[inside], np.maximum.reduceat(values, edges)[0::2])
        return most


WHOLE = -1
"""Stands for the whole GPU in the column of processes."""

LONGEST_GAP_NS = 2_000_000_000
"""Longest gap between two readings that still covers the time between them."""

COLUMNS = (
    "time_ns", "since_ns", "device", "process", "busy_percent", "memory_bytes", "power_mw", "temperature_c", "users",
)  # fmt: skip


@dataclass(frozen=True)
class Readings:
    """The rows of ``gpu`` (floats, NaN is unknown; process WHOLE is the whole GPU) and of ``gpu_devices``."""

    rows: pd.DataFrame
    devices: pd.DataFrame

    def device_busy(self, device: int) -> Busy:
        """Busy share of a GPU: from the driver's samples with times, or from its readings where it has none."""
        mine = self.whole(device)
        timed = mine[mine["since_ns"].notna() & mine["busy_percent"].notna()]
        if len(timed):
            timed = timed.sort_values("time_ns", kind="stable")
            return busy_of(*with_edges(_ns(timed["since_ns"]), _ns(timed["time_ns"]), _share(timed)))
        read = mine[mine["busy_percent"].notna()]
        end, share = _ns(read["time_ns"]), _share(read)
        near = np.diff(end) <= LONGEST_GAP_NS
        return busy_of(end[:-1][near], end[1:][near], share[1:][near])

    def process_busy(self, device: int, process: int) -> Busy | None:
        """Share of time that a process kept a GPU busy; None if the driver reports that of no process."""
        users = self.rows[(self.rows["device"] == device) & (self.rows["process"] != WHOLE)]
        measured = users[users["busy_percent"].notna() & users["since_ns"].notna()]
        read = self.whole(device)["time_ns"]
        if not len(measured) or not len(read):
            return None
        mine = measured[measured["process"] == process]
        first, last = int(read.min()), int(read.max())
        return busy_or_idle(_ns(mine["since_ns"]), _ns(mine["time_ns"]), _share(mine), first, last)

    def whole(self, device: int) -> pd.DataFrame:
        """The rows of a whole GPU."""
        return self.rows[(self.rows["device"] == device) & (self.rows["process"] == WHOLE)]

    def shared(self, device: int) -> bool:
        """True if more than one process was recorded on a GPU."""
        users = self.whole(device)["users"]
        return bool((users > 1).any())

    def used_by(self, process: int) -> list[int]:
        """The GPUs on which a process was recorded; all of them where processes could not be told apart."""
        of_processes = self.rows[self.rows["process"] != WHOLE]
        if not len(of_processes):
            return sorted(self.devices["device"].tolist())
        return sorted(of_processes.loc[of_processes["process"] == process, "device"].unique().tolist())

    def busy(self, process: int) -> Busy:
        """Device-nanoseconds that the GPUs of a process were busy: with it where others use them and that is known."""
        parts = []
        for device in self.used_by(process):
            own = self.process_busy(device, process) if self.shared(device) else None
            parts.append(self.device_busy(device) if own is None else own)
        return together(parts)

    def held(self, process: int) -> Held:
        """Memory of GPUs that a process held; that of the whole GPUs where the driver does not report it by process."""
        rows = self.rows[self.rows["memory_bytes"].notna()]
        mine = rows[rows["process"] == process]
        if not len(mine):
            mine = rows[(rows["process"] == WHOLE) & rows["device"].isin(self.used_by(process))]
        return summed_memory(mine)


def read_readings(recording: Recording) -> Readings | None:
    """All readings of a recording, None if GPUs were not read."""
    if not recording.rows("gpu"):
        return None
    import pandas as pd  # not loaded for a report without GPUs

    # Floating point, which pandas would make of times where some are missing, has no room for all of them.
    exact = {pa.int64(): pd.Int64Dtype()}
    parts = [
        batch.to_pandas().assign(since_ns=batch.column("since_ns").to_pandas(types_mapper=exact.get))
        for batch in recording.batches("gpu", COLUMNS)
    ]
    rows = pd.concat(parts, ignore_index=True)
    rows["process"] = rows["process"].fillna(WHOLE).astype(np.int64)
    rows["device"] = rows["device"].astype(np.int64)
    for name in ("busy_percent", "memory_bytes", "power_mw", "temperature_c", "users"):
        rows[name] = rows[name].astype(np.float64)
    rows.loc[rows["busy_percent"] > 100, "busy_percent"] = np.nan
    return Readings(rows, recording.table("gpu_devices").to_pandas())


def summed_memory(rows: pd.DataFrame) -> Held:
    """Memory over time of the rows of one or several GPUs, added up."""
    if not len(rows):
        return Held(np.zeros(0, np.int64), np.zeros(0))
    table = rows.pivot_table(index="time_ns", columns="device", values="memory_bytes", aggfunc="last")
    table = table.sort_index().ffill().fillna(0.0)
    return Held(table.index.to_numpy(np.int64), table.sum(axis=1).to_numpy(np.float64))


def _ns(column: pd.Series) -> Ids:
    return np.asarray(column.astype(np.int64), np.int64)


def _share(rows: pd.DataFrame) -> Floats:
    return np.asarray(rows["busy_percent"].to_numpy(np.float64) / 100, np.float64)
