"""Callers of workers by time: whom a native thread worked for when it did something that no CPU sample is of.

A worker's CPU samples are charged to the stacks of Python threads. Between two samples that are charged to different
calls of one thread, the samples and waits of that thread tell where the first call ended: what comes while the thread
is still seen in the first belongs to that, what comes when it has been seen elsewhere belongs to the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct

from ...recording.call_tree import NOTHING

Ids = NDArray[np.int64]

NEAR_NS = 250_000_000
"""A worker is taken to work for the same caller for so long before and after a sample."""

_FIRST, _SECOND, _NEITHER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Asked:
    """Samples of workers that were charged; all arrays have one length. ``by`` is the thread of ``stack``."""

    worker: Ids
    time_ns: Ids
    stack: Ids
    by: Ids


class Seen:
    """Where Python threads were seen, by thread and time. ``parent`` is that of each node of the call tree."""

    def __init__(self, thread: Ids, time_ns: Ids, stack: Ids, parent: Ids) -> None:
        order = np.lexsort((time_ns, thread))
        self._thread, self._time_ns, self._stack = thread[order], time_ns[order], stack[order]
        self._parent = parent.tolist()
        self._above: dict[int, list[int]] = {}

    def until(self, thread: int, begin_ns: int, end_ns: int, first: int, second: int) -> tuple[int, int]:
        """When the call of ``first`` was over, and when that of ``second`` had begun at the latest.

        The thread was seen in them at ``begin_ns`` and ``end_ns``. Times in between are in doubt.
        """
        low, high = np.searchsorted(self._thread, (thread, thread + 1))
        times = self._time_ns[low:high]
        rows = slice(int(np.searchsorted(times, begin_ns)), int(np.searchsorted(times, end_ns, side="right")))
        fork = self._fork(first, second)
        over, begun = begin_ns, end_ns
        known: dict[int, int] = {}
        for time_ns, node in zip(times[rows].tolist(), self._stack[low:high][rows].tolist(), strict=True):
            if node not in known:
                known[node] = self._side(node, first, second, fork)
            if known[node] == _FIRST:
                over, begun = time_ns, end_ns
            elif begun == end_ns:
                begun = time_ns
        return over, begun

    def _path(self, node: int) -> list[int]:
        """From the root to the node."""
        if node not in self._above:
            path, at = [], node
            while at != NOTHING:
                path.append(at)
                at = self._parent[at]
            self._above[node] = path[::-1]
        return self._above[node]

    def _fork(self, first: int, second: int) -> int:
        """Number of frames that two stacks have in common."""
        one, other = self._path(first), self._path(second)
        return next(
            (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
        )

    def _side(self, node: int, first: int, second: int, fork: int) -> int:
        """Which of two calls a stack is in: it shares their frame behind the fork."""
        path = self._path(node)
        for side, other in ((_FIRST, first), (_SECOND, second)):
            call = self._path(other)
            if len(path) > fork and len(call) > fork and path[fork] == call[fork]:
                return side
        return _NEITHER


class Askers:
    """The stacks that samples of workers were charged to, for what else workers did at about that time.

    ``group`` tells which workers serve the same callers: those of one library in one process; ``process`` is that of
    each thread.
    """

    def __init__(self, asked: Asked, group: Ids, process: Ids, seen: Seen) -> None:
        self._group = group
        self._by_thread = _Timeline(asked.worker, asked, seen)
        self._by_group = _Timeline(group[asked.worker], asked, seen)
        self._by_process = _Timeline(process[asked.worker], asked, seen)

    def __call__(self, thread: Ids, time_ns: Ids) -> Ids:
        """The stack that the nearest sample of a worker, or else of one of its group, was charged to; NOTHING: none.

        Where one thread alone asks the group, its samples tell more than the worker's own.
        """
        own, _ = self._by_thread.at(thread, time_ns)
        found, alone = self._by_group.at(np.append(self._group, NOTHING)[thread], time_ns)
        return np.where((found != NOTHING) & (alone | (own == NOTHING)), found, own)

    def in_process(self, process: Ids, time_ns: Ids) -> Ids:
        """The same for any worker of a process."""
        return self._by_process.at(process, time_ns)[0]


class _Timeline:
    """Charged samples by a number and time."""

    def __init__(self, number: Ids, asked: Asked, seen: Seen) -> None:
        order = np.lexsort((asked.time_ns, number))
        self._numbers = distinct(number)
        self._number, self._time_ns = number[order], asked.time_ns[order]
        self._stack, self._by = asked.stack[order], asked.by[order]
        self._zero_ns = int(asked.time_ns.min(initial=0)) - NEAR_NS - 1
        self._step = int(asked.time_ns.max(initial=0)) - self._zero_ns + NEAR_NS + 1
        self._key = self._keys(self._number, self._time_ns)
        self._seen = seen

    def _keys(self, number: Ids, time_ns: Ids) -> Ids:
        """Keys in the order of number and time, those of one number far from those of others."""
        within = np.clip(time_ns - self._zero_ns, 0, self._step - 1)
        return np.searchsorted(self._numbers, number).astype(np.int64) * self._step + within

    def at(self, number: Ids, time_ns: Ids) -> tuple[Ids, NDArray[np.bool_]]:
        """The stack of each number at a time, NOTHING where no sample is near; and whether one thread alone asked."""
        place = np.searchsorted(self._key, self._keys(number, time_ns))
        last = len(self._key) - 1
        before, after = np.clip(place - 1, 0, last), np.clip(place, 0, last)
        known = number != NOTHING
        far = NEAR_NS
        distances = []
        for at in (before, after):
            near = known & (self._number[at] == number)
            distances.append(np.where(near, np.minimum(np.abs(self._time_ns[at] - time_ns), far), far))
        earlier, later = distances
        nearest = np.where(later < earlier, after, before)
        result = np.where(np.minimum(earlier, later) < far, self._stack[nearest], NOTHING)
        alone = (earlier >= far) | (later >= far) | (self._by[before] == self._by[after])
        doubtful = (earlier < far) & (later < far) & (before != after)
        doubtful &= alone & (self._stack[before] != self._stack[after])
        for gap in distinct(before[doubtful]).tolist():
            mine = np.flatnonzero(doubtful & (before == gap))
            first, second = int(self._stack[gap]), int(self._stack[gap + 1])
            over, begun = self._seen.until(
                int(self._by[gap]), int(self._time_ns[gap]), int(self._time_ns[gap + 1]), first, second
            )
            result[mine] = np.where(2 * time_ns[mine] <= over + begun, first, second)
            result[mine[time_ns[mine] <= over]] = first
            result[mine[time_ns[mine] >= begun]] = second
        return result, alone
