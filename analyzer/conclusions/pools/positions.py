"""Reads the positions of Python threads beside the CPU samples that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import filled, ids

from ...recording.opened import Recording

_COLUMNS = ("time_ns", "sampled", "thread", "stack", "cpu_ns", "running", "holds_work")


@dataclass(frozen=True)
class Positions:
    """Some rows of ``positions``, in the order of time. All arrays have one length."""

    time_ns: NDArray[np.int64]
    sampled: NDArray[np.int64]
    thread: NDArray[np.int64]
    stack: NDArray[np.int64]
    """Nodes of the call tree; the number of nodes where there is none."""
    used_ns: NDArray[np.int64]
    """CPU time that the thread used since it was last looked at; 0 at the first time."""
    running: NDArray[np.bool_]
    holds_work: NDArray[np.bool_]
    """Whether what the sampled thread works at lies on this thread's stack; false also where that is not known."""

    def __len__(self) -> int:
        return len(self.time_ns)

    def only(self, which: NDArray[Any] | slice) -> Positions:
        """Some of the rows: a mask or a slice."""
        return Positions(*(getattr(self, each.name)[which] for each in fields(self)))

    def followed_by(self, more: Positions) -> Positions:
        """These rows and then others."""
        pairs = ((getattr(self, each.name), getattr(more, each.name)) for each in fields(self))
        return Positions(*(np.concatenate(pair) for pair in pairs))


class PositionReader:
    """Gives out the rows of ``positions`` up to one time after the other."""

    def __init__(self, recording: Recording) -> None:
        self._batches = recording.batches("positions", _COLUMNS)
        self._nodes = recording.rows("stacks")
        self._clock = np.full(recording.rows("threads"), -1, np.int64)
        none = np.empty(0, np.int64)
        self._held = Positions(none, none, none, none, none, np.empty(0, np.bool_), np.empty(0, np.bool_))
        self._more = True

    def until(self, time_ns: int) -> Positions:
        """The rows up to a time, that time included, which were not given out before."""
        while self._more and (not len(self._held) or self._held.time_ns[-1] <= time_ns):
            batch = next(self._batches, None)
            if batch is None:
                self._more = False
                break
            self._held = self._held.followed_by(self._read(batch))
        end = int(np.searchsorted(self._held.time_ns, time_ns, side="right"))
        given, self._held = self._held.only(slice(0, end)), self._held.only(slice(end, None))
        return given

    def _read(self, batch: Any) -> Positions:
        time_ns, sampled, thread, clock = (
            ids(batch.column(name)) for name in ("time_ns", "sampled", "thread", "cpu_ns")
        )
        running, holds = (filled(batch.column(name), 0).astype(np.bool_) for name in ("running", "holds_work"))
        stack = ids(batch.column("stack"), self._nodes)
        return Positions(time_ns, sampled, thread, stack, self._used(thread, clock), running, holds)

    def _used(self, thread: NDArray[np.int64], clock: NDArray[np.int64]) -> NDArray[np.int64]:
        """What each thread's clock has advanced since its row before; the rows are in the order of time."""
        order = np.argsort(thread, kind="stable")
        owner, ordered = thread[order], clock[order]
        begins = np.append(True, owner[1:] != owner[:-1]) if len(owner) else np.empty(0, np.bool_)
        before = np.where(begins, self._clock[owner], np.append(-1, ordered[:-1]))
        used = np.empty(len(thread), np.int64)
        used[order] = np.where(before < 0, 0, np.maximum(ordered - before, 0))
        self._clock[owner] = ordered  # the last of each owner's stays
        return used
