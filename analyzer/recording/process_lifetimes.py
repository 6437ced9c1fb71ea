"""When each process of a recording lived."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids, known, numbers

from .opened import Recording

_Ids = NDArray[np.int64]

_ROWS = (("waits", "end_ns"), ("cpu", "time_ns"))
"""What is looked at for the last sign of life of a process whose end was not seen."""


@dataclass(frozen=True)
class ProcessLifetimes:
    """By process, monotonic times of its beginning and its end; where the end was not seen, its last sign of life."""

    start_ns: _Ids
    end_ns: _Ids
    seen: NDArray[np.bool_]
    """Whether the end was seen."""

    def at(self, moment_ns: int) -> NDArray[np.bool_]:
        """Which processes lived at a moment."""
        return (self.start_ns <= moment_ns) & (self.end_ns >= moment_ns)

    def within(self, start_ns: int, end_ns: int) -> NDArray[np.bool_]:
        """Which processes lived between two moments, or for a part of that."""
        return (self.start_ns <= end_ns) & (self.end_ns >= start_ns)

    def length_ns(self, start_ns: int, end_ns: int) -> _Ids:
        """How long each of them lived between two moments."""
        length = np.minimum(self.end_ns, end_ns) - np.maximum(self.start_ns, start_ns)
        return np.asarray(np.maximum(length, 0), np.int64)


def read_process_lifetimes(recording: Recording) -> ProcessLifetimes:
    """The lifetimes of the processes; those that outlived the recording end with it."""
    table = recording.table("processes")
    start_ns = ids(table.column("start_ns"))
    ends = table.column("end_ns")
    seen = known(ends)
    outlived = {entry.get("process") for entry in recording.manifest.quality if entry["loss"] == "processes_outlived"}
    if recording.rotated_on:
        outlived = set(range(len(seen)))
    asked = np.array([not known and number not in outlived for number, known in enumerate(seen.tolist())], np.bool_)
    last = recording.end_ns
    if last is None or (asked.any() and len(seen) > 1):
        signs = _last_signs(recording)
        last = max([last or 0, recording.start_ns, *signs.tolist()])
        # A process of which nothing was recorded but its beginning may have lived for as long as the recording.
        unseen_ns = np.where(asked & (signs > 0), signs, last)
    else:
        unseen_ns = np.full(len(seen), last)
    end_ns = np.where(seen, ids(ends, 0), unseen_ns)
    return ProcessLifetimes(start_ns, np.maximum(start_ns, end_ns), seen)


def _last_signs(recording: Recording) -> _Ids:
    """By process, the last moment at which anything was recorded of it; 0 where nothing was."""
    threads = recording.table("threads")
    owner = ids(threads.column("process"))
    last = np.zeros(recording.rows("processes"), np.int64)
    np.maximum.at(last, owner, ids(threads.column("end_ns"), 0))
    by_thread = np.zeros(len(owner), np.int64)
    for name, column in _ROWS:
        for batch in recording.batches(name, (column, "thread")):
            np.maximum.at(by_thread, numbers(batch.column("thread")), numbers(batch.column(column)))
    np.maximum.at(last, owner, by_thread)
    for batch in recording.batches("memory", ("time_ns", "process")):
        np.maximum.at(last, numbers(batch.column("process")), ids(batch.column("time_ns")))
    return last
