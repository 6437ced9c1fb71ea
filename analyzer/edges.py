"""Finds the start and end of interpreters: what main threads did before their first Python frame and after the last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .recording import Recording

STARTING, ENDING = 6, 7
"""Values of ``stack_state`` that the analyzer gives to rows without Python frames; the format has none of them."""

_NO_STACK = 1


@dataclass(frozen=True, slots=True)
class Edges:
    """By main thread, the first and the last sample with a Python stack: row numbers in ``cpu``, and times."""

    rows: dict[int, tuple[int, int]]
    times: dict[int, tuple[int, int]]

    def mark_rows(self, state: NDArray[np.integer], thread: NDArray[np.integer], first_row: int) -> NDArray[np.integer]:
        """The states of rows of ``cpu``, the first of which is row ``first_row``, with starts and ends marked."""
        last_row = first_row + len(state)
        for main, (first, last) in self.rows.items():
            if first_row < first or last_row > last + 1:
                row = np.arange(first_row, last_row)
                state = _marked(state, thread == main, row < first, row > last)
        return state

    def mark_times(
        self,
        state: NDArray[np.integer],
        thread: NDArray[np.integer],
        start_ns: NDArray[np.int64],
        end_ns: NDArray[np.int64],
    ) -> NDArray[np.integer]:
        """The states of spans of ``waits``, with starts and ends marked."""
        for main, (first, last) in self.times.items():
            state = _marked(state, thread == main, end_ns <= first, start_ns >= last)
        return state


def find_edges(recording: Recording) -> Edges:
    """Looks at ``cpu`` from both ends, as far as it must: as a rule at a row group or two."""
    threads = recording.table("threads").column("main").to_pylist()
    mains = {thread for thread, main in enumerate(threads) if main is True}
    groups = recording.tables.row_groups("cpu")
    offsets = np.concatenate(([0], np.cumsum(groups))).tolist()
    first = _scan(recording, mains, list(range(len(groups))), offsets, place=0)
    last = _scan(recording, set(first), list(reversed(range(len(groups)))), offsets, place=-1)
    found = [main for main in first if main in last]
    return Edges(
        {main: (first[main][0], last[main][0]) for main in found},
        {main: (first[main][1], last[main][1]) for main in found},
    )


def _scan(
    recording: Recording, mains: set[int], groups: Iterable[int], offsets: list[int], place: int
) -> dict[int, tuple[int, int]]:
    """Row and time of the first (``place`` 0) or last (-1) row with a stack of each thread that has one."""
    found: dict[int, tuple[int, int]] = {}
    for group in groups:
        if len(found) == len(mains):
            break
        table = recording.tables.read_group("cpu", group, ("time_ns", "thread", "stack"))
        thread = table.column("thread").to_numpy()
        stacked = table.column("stack").is_valid().to_numpy()
        for main in mains - found.keys():
            rows = np.flatnonzero(stacked & (thread == main))
            if len(rows):
                row = int(rows[place])
                found[main] = (offsets[group] + row, table.column("time_ns")[row].as_py())
    return found


def _marked(
    state: NDArray[np.integer], mine: NDArray[np.bool_], before: NDArray[np.bool_], after: NDArray[np.bool_]
) -> NDArray[np.integer]:
    mine = mine & (state == _NO_STACK)
    return np.where(mine & before, STARTING, np.where(mine & after, ENDING, state))
