"""Time that suspended tasks await, by the place where they stand: from the censuses of the table ``awaits``.

A census tells how many tasks stood where at one moment, as an estimate: those that were looked at, divided by the
chance that each had. Between two censuses of a process the number at a place is taken to go in a straight line from the
one to the other, so a census stands for half of the time since the one before and half of the time until the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError
from tachograph.format.arrays import ids, numbers

from ..recording.filter import Filter
from ..recording.opened import Recording
from ..recording.time_window import Window
from ..samples.sites import NodeSums
from ..samples.summary import Columns, Placement
from ..statistics.grouped_sums import summed
from ..statistics.intervals import Z95

MEASURE = "await_ns"
ENOUGH = 10
"""So many tasks tell how many there are, to within a third."""

COLUMNS = ("await_s", "await_low_s", "await_high_s", "total_await_s", "awaiting_mean", "awaiting_peak")

_READ = ("time_ns", "since_ns", "process", "stack", "awaiter", "tasks", "chance", "span")

_Ids = NDArray[np.int64]
_Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Awaits:
    """Places where tasks stood, census by census. All arrays have one length."""

    census: _Ids
    """Numbers of the censuses."""
    stack: _Ids
    """Nodes of the call tree."""
    awaiter: _Ids
    """Nodes where the awaiting tasks stood; -1 where there is none, or it is not known."""
    tasks: _Floats
    """Tasks that stood there, as an estimate."""
    looked_at: _Floats
    """Those of them that were looked at."""
    await_ns: _Floats
    """The time that they stand for, added up over tasks."""
    time_ns: _Ids
    """When they were looked at."""
    span: _Ids
    """The innermost span that they were in; -1 where there is none, or it is not known."""
    process: _Ids
    from_ns: _Ids
    until_ns: _Ids
    """The time that their census stands for."""

    def sums(self, nodes: int) -> NodeSums:
        """Nanoseconds by node."""
        return NodeSums((MEASURE,), summed(self.stack, self.await_ns, nodes)[:, None], [], np.zeros((0, 1)))

    def most(self, row: _Ids, rows: int) -> _Floats:
        """The largest number of tasks that stood in a row at a time; ``row`` is that of each node."""
        return self.most_by(row[self.stack], rows)

    def deviation(self, row: _Ids, rows: int) -> _Floats:
        """Standard deviations of the nanoseconds of each row, as they come from single moments and some of the tasks.

        From the differences between each census and the next (von Neumann 1941): where as many tasks stand at all times
        there is none, and what changes slowly counts little. ``row`` is that of each node.
        """
        variance = np.zeros(rows)
        if not len(self.census):
            return variance
        first, count = int(self.census.min()), int(np.ptp(self.census)) + 2
        keys, group = np.unique(row[self.stack] * count + self.census - first, return_inverse=True)
        tasks, await_ns = (summed(group, values, len(keys)) for values in (self.tasks, self.await_ns))
        stands_for = np.divide(await_ns, tasks, out=np.zeros(len(keys)), where=tasks > 0)
        # A census in which none stood there has no entry: then the one beside it differs by all of its tasks.
        follows = np.append(np.diff(keys) == 1, False)
        preceded = np.append(False, follows[:-1])
        alone = (~follows).astype(np.float64) + ~preceded
        squares = alone * (stands_for * tasks) ** 2 / 2
        pair = np.flatnonzero(follows)
        squares[pair] += (stands_for[pair] ** 2 + stands_for[pair + 1] ** 2) * (tasks[pair + 1] - tasks[pair]) ** 2 / 4
        return np.sqrt(summed(keys // count, squares, rows))

    def most_by(self, row: _Ids, rows: int) -> _Floats:
        """The same; ``row`` is that of each entry.

        Where tasks were chosen by chance, it is the largest mean of as many censuses as it takes to look at ``ENOUGH``
        tasks there: the largest of single estimates would be one that is too large.
        """
        most = np.zeros(rows)
        if not len(self.census):
            return most
        first, count = int(self.census.min()), int(np.ptp(self.census)) + 1
        keys, group = np.unique(row * count + self.census - first, return_inverse=True)
        tasks, found = (summed(group, values, len(keys)) for values in (self.tasks, self.looked_at))
        of, census = np.divmod(keys, count)
        borders = np.flatnonzero(np.diff(of, prepend=-1, append=rows))
        for begin, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            mine = slice(begin, end)
            estimates, seen = tasks[mine], float(found[mine].sum())
            length = 1 if seen >= estimates.sum() * (1 - 1e-9) else min(count, int(np.ceil(ENOUGH * count / seen)))
            if length > 1:
                before = np.concatenate(([0.0], np.cumsum(np.bincount(census[mine], estimates, count))))
                estimates = (before[length:] - before[:-length]) / length
            most[of[begin]] = estimates.max()
        return most


def read_awaits(recording: Recording, window: Window, selected: Filter) -> Awaits | None:
    """The censuses in a window, of the selected processes; None where nothing is known.

    Nothing is known where no task was seen suspended, which older recordings could not tell, for some threads alone,
    as a suspended task is in none, and for some spans where tasks do not say in which they are.
    """
    if not recording.rows("awaits") or selected.named is not None:
        return None
    if window.spans is not None and window.tracks is None:
        return None
    schema = pa.schema([recording.specification.tables["awaits"].schema.field(name) for name in _READ])
    table = pa.Table.from_batches(recording.batches("awaits", _READ), schema=schema)
    time_ns, since_ns, process = (np.asarray(numbers(table.column(name)), np.int64) for name in _READ[:3])
    chance = np.asarray(numbers(table.column("chance")), np.float64)
    if not ((chance > 0) & (chance <= 1)).all():
        raise FormatError("table awaits: a chance is not above 0 and at most 1")
    looked_at = np.asarray(numbers(table.column("tasks")), np.float64)
    tasks = looked_at / chance
    stack, awaiter = ids(table.column("stack")), ids(table.column("awaiter"))
    order = np.lexsort((time_ns, process))
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(process[order]) != 0) | (np.diff(time_ns[order]) != 0)
    census = np.empty(len(order), np.int64)
    census[order] = np.cumsum(first) - 1
    beginning = order[first]
    at, since, of = time_ns[beginning], np.minimum(since_ns[beginning], time_ns[beginning]), process[beginning]
    half = (at - since) / 2.0
    stands_for = half.copy()
    # A census that found nothing is only there after one that found something: else the one before has no next one.
    follows = (of[1:] == of[:-1]) & (since[1:] == at[:-1])
    stands_for[:-1] += np.where(follows, half[1:], 0.0)
    mine = (stack >= 0) & (time_ns >= window.start_ns) & (time_ns < window.end_ns)
    if selected.processes is not None:
        mine &= selected.processes[process]
    span = ids(table.column("span"))
    if window.spans is not None and window.tracks is not None:
        mine &= window.spans.contains(window.tracks.of_span[span], time_ns)
    await_ns = tasks * stands_for[census]
    numbered = census[mine], stack[mine], awaiter[mine]
    begin = at - half.astype(np.int64)
    end = at + (stands_for - half).astype(np.int64)
    times = begin[census][mine], end[census][mine]
    return Awaits(
        *(*numbered, tasks[mine], looked_at[mine], await_ns[mine], time_ns[mine], span[mine], process[mine], *times)
    )


@dataclass(frozen=True)
class AwaitColumns:
    """Makes ``COLUMNS`` from the measures ``names`` of a summary; NaN where nothing is known."""

    names: tuple[str, ...]
    awaits: Awaits | None
    wall_s: float | None

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> Columns:
        """Seconds that tasks stood there, their 95 % interval, and how many at a time: on average, and at most."""
        if self.awaits is None:
            return dict.fromkeys(COLUMNS, np.full(placement.rows, np.nan))
        place = self.names.index(MEASURE)
        seconds = own[:, place] / 1e9
        mean = seconds / self.wall_s if self.wall_s else np.full(placement.rows, np.nan)
        most = self.awaits.most(placement.node_rows, placement.rows)
        spread = Z95 * self.awaits.deviation(placement.node_rows, placement.rows) / 1e9
        ends = np.maximum(seconds - spread, 0.0), seconds + spread
        return dict(zip(COLUMNS, (seconds, *ends, total[:, place] / 1e9, mean, most), strict=True))
