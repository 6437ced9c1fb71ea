"""Start and end of each process, and of the interpreter in each thread.

The interpreter phases are the time before the first Python frame of a main thread, and after its last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import ids, known, numbers
from tachograph.format.enumerations import StackState

from .opened import Recording

STARTING, ENDING = len(StackState), len(StackState) + 1
"""Values of ``stack_state`` that the analyzer gives to rows without Python frames; the format has none of them."""

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class InterpreterPhases:
    """First and last sample with a Python stack of each thread: row numbers in ``cpu``, and times.

    Of threads that are not the main thread, or have no such sample, the first is -1 and the last is beyond everything.
    """

    first_row: _Ids
    last_row: _Ids
    first_ns: _Ids
    last_ns: _Ids

    def mark_rows(self, state: NDArray[np.integer], thread: NDArray[np.integer], first_row: int) -> NDArray[np.integer]:
        """The states of rows of ``cpu``, the first of which is row ``first_row``, with starts and ends marked."""
        rows = np.flatnonzero(state == StackState.NONE)
        thread = thread[rows]
        number = rows + first_row
        return _marked(state, rows, number < self.first_row[thread], number > self.last_row[thread])

    def mark_times(
        self,
        state: NDArray[np.integer],
        thread: NDArray[np.integer],
        start_ns: NDArray[np.int64],
        end_ns: NDArray[np.int64],
    ) -> NDArray[np.integer]:
        """The states of spans of ``waits``, with starts and ends marked; the thread -1 is none."""
        rows = np.flatnonzero((state == StackState.NONE) & (thread >= 0))
        thread = thread[rows]
        return _marked(state, rows, end_ns[rows] <= self.first_ns[thread], start_ns[rows] >= self.last_ns[thread])


def find_interpreter_phases(recording: Recording) -> InterpreterPhases:
    """Looks at ``cpu`` from both ends, as far as it must: for one process as a rule at a row group or two."""
    threads = recording.all_threads
    start_ns, end_ns = threads.start_ns.filled(0), threads.end_ns.filled(_NEVER)
    groups = recording.tables.row_groups("cpu")
    offsets = np.concatenate(([0], np.cumsum(groups))).tolist()
    forwards = list(range(len(groups)))
    read = lru_cache(maxsize=1)(partial(recording.tables.read_group, "cpu", columns=("time_ns", "thread", "stack")))
    first_row, first_ns = _scan(read, threads.main, forwards, offsets, _Last(end_ns, sign=1))
    sampled = first_row >= 0
    last_row, last_ns = _scan(read, sampled, forwards[::-1], offsets, _Last(start_ns, sign=-1))
    return InterpreterPhases(
        first_row, np.where(sampled, last_row, _NEVER), first_ns, np.where(sampled, last_ns, _NEVER)
    )


@dataclass(frozen=True, slots=True)
class _Last:
    """Last moment of each thread's life in the direction of a search: forwards (``sign`` 1) or backwards (-1)."""

    moment_ns: _Ids
    sign: int

    def passed(self, time_ns: _Ids) -> NDArray[np.bool_]:
        """True for threads that cannot have rows beyond ``time_ns``, which are the times of a row group."""
        return self.sign * self.moment_ns < self.sign * int(time_ns[-1 if self.sign > 0 else 0])


def _scan(
    read: Callable[[int], pa.Table], threads: NDArray[np.bool_], groups: Iterable[int], offsets: list[int], last: _Last
) -> tuple[_Ids, _Ids]:
    """Row and time of the first row with a stack of each of ``threads``, in the direction of the search; -1: none."""
    row, moment = np.full(len(threads), -1, np.int64), np.full(len(threads), -1, np.int64)
    missing = threads.copy()
    for group in groups:
        if not missing.any():
            break
        table = read(group)
        thread, time_ns = numbers(table.column("thread")), numbers(table.column("time_ns"))
        if not len(thread):
            continue
        rows = np.flatnonzero(known(table.column("stack")) & missing[thread])
        # Of several rows of a thread the one that is assigned last stays.
        rows = rows[::-1] if last.sign > 0 else rows
        row[thread[rows]], moment[thread[rows]] = rows + offsets[group], time_ns[rows]
        missing &= (row < 0) & ~last.passed(time_ns)
    return row, moment


def _marked(
    state: NDArray[np.integer], rows: _Ids, before: NDArray[np.bool_], after: NDArray[np.bool_]
) -> NDArray[np.integer]:
    if not (before.any() or after.any()):
        return state
    marked = state.copy()
    marked[rows[before]] = STARTING
    marked[rows[after & ~before]] = ENDING
    return marked


_Ids = NDArray[np.int64]

_ROWS = (("waits", "end_ns"), ("cpu", "time_ns"))
"""Rows read for the last sign of life of a process without a recorded end."""


@dataclass(frozen=True)
class ProcessLifetimes:
    """Monotonic start and end times of each process; the last sign of life where no end was recorded."""

    start_ns: _Ids
    end_ns: _Ids
    end_recorded: NDArray[np.bool_]
    """True where the end was recorded; elsewhere ``end_ns`` is the last sign of life."""

    def at(self, moment_ns: int) -> NDArray[np.bool_]:
        """True for processes that were alive at a moment."""
        return (self.start_ns <= moment_ns) & (self.end_ns >= moment_ns)

    def within(self, start_ns: int, end_ns: int) -> NDArray[np.bool_]:
        """True for processes that were alive at some time between two moments."""
        return (self.start_ns <= end_ns) & (self.end_ns >= start_ns)

    def length_ns(self, start_ns: int, end_ns: int) -> _Ids:
        """Time that each of them was alive between two moments."""
        length = np.minimum(self.end_ns, end_ns) - np.maximum(self.start_ns, start_ns)
        return np.asarray(np.maximum(length, 0), np.int64)


def read_process_lifetimes(recording: Recording) -> ProcessLifetimes:
    """The lifetimes of the processes; those that outlived the recording end with it."""
    start_ns, ends = recording.all_processes.start_ns, recording.all_processes.end_ns
    end_recorded = ~ends.unknown
    outlived = {entry.get("process") for entry in recording.manifest.quality if entry["loss"] == "processes_outlived"}
    if recording.rotated_on:
        outlived = set(range(len(end_recorded)))
    needs_sign = np.array(
        [not recorded and number not in outlived for number, recorded in enumerate(end_recorded.tolist())], np.bool_
    )
    last = recording.end_ns
    if last is None or (needs_sign.any() and len(end_recorded) > 1):
        signs = _last_signs(recording)
        last = max([last or 0, recording.start_ns, *signs.tolist()])
        # A process of which nothing was recorded but its beginning may have lived for as long as the recording.
        unseen_ns = np.where(needs_sign & (signs > 0), signs, last)
    else:
        unseen_ns = np.full(len(end_recorded), last)
    end_ns = np.where(end_recorded, ends.values, unseen_ns)
    return ProcessLifetimes(start_ns, np.maximum(start_ns, end_ns), end_recorded)


def _last_signs(recording: Recording) -> _Ids:
    """Last moment at which anything was recorded of each process; 0 where nothing was."""
    threads = recording.all_threads
    last = np.zeros(len(recording.all_processes), np.int64)
    np.maximum.at(last, threads.process, threads.end_ns.filled(0))
    by_thread = np.zeros(len(threads), np.int64)
    for name, column in _ROWS:
        for batch in recording.batches(name, (column, "thread")):
            np.maximum.at(by_thread, numbers(batch.column("thread")), numbers(batch.column(column)))
    np.maximum.at(last, threads.process, by_thread)
    for batch in recording.batches("memory", ("time_ns", "process")):
        np.maximum.at(last, numbers(batch.column("process")), ids(batch.column("time_ns")))
    return last
