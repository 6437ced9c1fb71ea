"""Charges the CPU time of native threads to the Python lines that submitted the work: the one place that decides this.

A *worker* is a native thread: one that Python did not start, while it has no Python frames. Its sample is charged to
the stack of a Python thread of its process at that moment (the table ``positions``, read beside the CPU samples):

1. A worker that waits for work, spinning, is charged to nothing: it is idle behind one call, and not yet in another.
2. Candidates are the threads in a call of the pool's library, or else those that may be in one
   (``submitters.Submitters``).
3. If the worker's work lies on the stack of a candidate, or there is no candidate and it lies on the stack of a thread
   in Python code, that thread is the only one.
4. A team of an OpenMP runtime belongs to the thread that created it: if that is a candidate, it is the only one.
5. Of several candidates those that were on a CPU at that moment share the time equally: one whose call waits for
   another's is not. If none was, they share it by the CPU time that each has used since its last sample.
6. Without a candidate, those threads that were on a CPU in a call of which there is no CPU sample at all share it.
7. Else it stays unattributed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct, filled, ids
from tachograph.format.enumerations import StackState

from ...recording.call_tree import NOTHING
from ...recording.frame import take_rows
from ...recording.opened import Recording
from ...recording.question_options import PoolRule
from ...samples.sites import NodeSums, state_label
from ...samples.stream import CpuBatch, Stream, WaitBatch
from ...samples.summary import Columns, Placement
from .askers import Asked, Askers, Seen
from .submitters import NO_LIBRARY, PoolFrames, Submitters

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
    """CPU time that the thread used since its row before; 0 at the first."""
    running: NDArray[np.bool_]
    holds_work: NDArray[np.bool_]
    """True if the work of the sampled thread lies on this thread's stack; False also where that is unknown."""

    def __len__(self) -> int:
        return len(self.time_ns)

    def only(self, which: NDArray[Any] | slice) -> Positions:
        """Some of the rows: a mask or a slice."""
        return take_rows(self, which)

    def followed_by(self, more: Positions) -> Positions:
        """These rows and then others."""
        pairs = ((getattr(self, each.name), getattr(more, each.name)) for each in fields(self))
        return Positions(*(np.concatenate(pair) for pair in pairs))


class PositionReader:
    """Reads the rows of ``positions`` up to one time after the other."""

    def __init__(self, recording: Recording) -> None:
        self._batches = recording.batches("positions", _COLUMNS)
        self._nodes = recording.rows("stacks")
        self._clock = np.full(len(recording.all_threads), -1, np.int64)
        none = np.empty(0, np.int64)
        self._held = Positions(none, none, none, none, none, np.empty(0, np.bool_), np.empty(0, np.bool_))
        self._more = True

    def until(self, time_ns: int) -> Positions:
        """The rows after the last call, up to and including a time."""
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
        """Advance of each thread's clock since its row before; the rows are in the order of time."""
        order = np.argsort(thread, kind="stable")
        owner, ordered = thread[order], clock[order]
        begins = np.append(True, owner[1:] != owner[:-1]) if len(owner) else np.empty(0, np.bool_)
        before = np.where(begins, self._clock[owner], np.append(-1, ordered[:-1]))
        used = np.empty(len(thread), np.int64)
        used[order] = np.where(before < 0, 0, np.maximum(ordered - before, 0))
        self._clock[owner] = ordered  # the last of each owner's stays
        return used


MEASURE = "pool_ns"

COLUMNS = ("pool_cpu_s", "total_pool_cpu_s")
"""CPU seconds that native threads spent for a line itself, and for all that it calls; no part of ``cpu_s``."""

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PoolTime:
    """The CPU time of native threads in a question, in seconds; the first is the sum of charged and unattributed."""

    pool_cpu_s: float = 0.0
    pool_unattributed_s: float = 0.0
    """The part that is charged to no line."""
    pool_waiting_s: float = 0.0
    """The part of that in which workers waited for work, spinning."""
    pool_shared_s: float = 0.0
    """The part of the charged time that several threads may have submitted: it was shared out among them."""


class PoolSums:
    """The sink that charges the time of workers."""

    def __init__(self, stream: Stream, rule: PoolRule) -> None:
        self._stream = stream
        self._nodes = stream.nodes
        self._workers = stream.recording.all_threads.native
        self.times = rule is PoolRule.POSITIONS and bool(self._workers.any()) and stream.recording.rows("positions") > 0
        self._judge = _Judge(stream, self._workers) if self.times else None
        self._charged = np.zeros(stream.nodes)
        self._waiting = self._shared = 0.0
        self._asked: list[Asked] = []
        self._seen: list[tuple[Ids, Ids, Ids]] = []

    def cpu(self, batch: CpuBatch) -> None:
        """Takes some CPU samples."""
        if self._judge is None or not len(batch):
            return
        self._see(batch.thread, batch.time_ns, batch.stack)
        mine = np.flatnonzero(self._workers[batch.thread] & (batch.state == StackState.NONE))
        charges = self._judge.judge(batch, mine)
        self._charged += np.bincount(charges.stack, charges.weight_ns, self._nodes)[: self._nodes]
        self._waiting += charges.waiting_ns
        self._shared += charges.shared_ns
        self._asked.append(charges.asked)

    def waits(self, batch: WaitBatch) -> None:
        """Waits are charged to nothing; where a thread is when they end tells which call goes on."""
        if self._judge is not None:
            self._see(batch.thread, batch.end_ns, batch.stack)

    def _see(self, thread: NDArray[np.integer], time_ns: Ids, stack: NDArray[np.integer]) -> None:
        python = np.flatnonzero(stack != self._nodes)
        self._seen.append((thread[python].astype(np.int64), time_ns[python], stack[python].astype(np.int64)))

    def askers(self) -> Askers | None:
        """The callers of workers by time; None where nothing is charged to any."""
        if self._judge is None or not self._asked:
            return None
        asked = Asked(*(np.concatenate([getattr(part, each.name) for part in self._asked]) for each in fields(Asked)))
        if not len(asked.worker):
            return None
        recording = self._stream.recording
        parent = ids(recording.table("stacks").column("parent"), NOTHING)
        thread, time_ns, stack = (np.concatenate(columns) for columns in zip(*self._seen, strict=True))
        mine = np.isin(thread, distinct(asked.by))
        return Askers(
            asked,
            self._judge.groups(),
            recording.all_threads.process,
            Seen(thread[mine], time_ns[mine], stack[mine], parent),
        )

    def time(self) -> PoolTime:
        """The sums so far."""
        return PoolTime(self._all() / 1e9, self._left() / 1e9, self._waiting / 1e9, self._shared / 1e9)

    def sums(self) -> NodeSums:
        """Charged time by node of the call tree; the rest is with the threads without Python stacks."""
        left = np.array([[self._left()]])
        return NodeSums((MEASURE,), self._charged[:, np.newaxis], [state_label(StackState.NONE)], left)

    def _all(self) -> float:
        """All CPU time of workers."""
        groups, totals = self._stream.groups.columns, self._stream.sums.totals
        mine = self._workers[groups["thread"]] & (groups["stack_state"] == StackState.NONE)
        return float(totals["cpu_ns"][mine].sum())

    def _left(self) -> float:
        """Time that is charged to nothing."""
        return max(0.0, self._all() - float(self._charged.sum()))


@dataclass(frozen=True)
class PoolColumns:
    """Makes the columns from the measures ``names`` of a summary."""

    names: tuple[str, ...]

    def columns(self, placement: Placement, own: Floats, total: Floats) -> Columns:
        """The columns, for every row of a frame."""
        del placement
        place = self.names.index(MEASURE)
        return dict(zip(COLUMNS, (own[:, place] / 1e9, total[:, place] / 1e9), strict=True))


@dataclass(frozen=True)
class _Charges:
    """Weights charged to each node, and those charged to none."""

    stack: Ids
    weight_ns: Floats
    waiting_ns: float
    shared_ns: float
    asked: Asked
    """The charged samples, with the stack that most of each is charged to."""


class _Judge:
    """Decides which threads submitted the work of samples."""

    def __init__(self, stream: Stream, workers: NDArray[np.bool_]) -> None:
        recording = self._recording = stream.recording
        self._frames = PoolFrames(recording)
        self._submitters = Submitters(stream, self._frames, workers)
        self._positions = PositionReader(recording)
        self._threads = len(recording.all_threads)
        self._nodes = recording.rows("stacks")

    def judge(self, batch: CpuBatch, mine: NDArray[np.intp]) -> _Charges:
        """Charges the rows ``mine`` of a batch."""
        rows = self._positions.until(int(batch.time_ns[-1]))
        thread, time_ns, weight = batch.thread[mine].astype(np.int64), batch.time_ns[mine], batch.weight_ns[mine]
        start = self._submitters.start[thread]
        waiting = self._frames.waiting(batch.native[mine], batch.native_stack[mine], start)
        sample = self._samples_of(rows, thread, time_ns)
        rows, sample = rows.only(sample != NOTHING), sample[sample != NOTHING]
        rows, sample = rows.only(~waiting[sample]), sample[~waiting[sample]]
        parts = self._parts(rows, sample, thread)
        whole = np.bincount(sample, parts, len(mine))
        share = np.divide(parts, whole[sample], out=np.zeros(len(rows)), where=whole[sample] > 0)
        several = np.bincount(sample, (share > 0) & (share < 1), len(mine)) > 0
        kept = share > 0
        most = np.lexsort((share, sample))
        most = most[np.append(sample[most][1:] != sample[most][:-1], True) & kept[most]] if len(most) else most
        return _Charges(
            rows.stack[kept],
            (share * weight[sample])[kept],
            float(weight[waiting].sum()),
            float(weight[several].sum()),
            Asked(thread[sample[most]], time_ns[sample[most]], rows.stack[most], rows.thread[most]),
        )

    def groups(self) -> Ids:
        """By thread a number that is the same for workers of one library in one process; NOTHING for other threads."""
        libraries = self._submitters.libraries
        owner = self._recording.all_threads.process
        return np.where(libraries == NO_LIBRARY, NOTHING, owner * (len(self._frames.paths) + 1) + libraries)

    def _samples_of(self, rows: Positions, thread: Ids, time_ns: Ids) -> Ids:
        """The index of the sample of each row; NOTHING for rows whose sample is not among them."""
        if not len(thread) or not len(rows):
            return np.full(len(rows), NOTHING, np.int64)
        since = int(time_ns[0])
        key = (time_ns - since) * self._threads + thread
        keys = (rows.time_ns - since) * self._threads + rows.sampled
        order = np.argsort(key, kind="stable")
        place = np.minimum(np.searchsorted(key[order], keys), len(key) - 1)
        return np.where(key[order][place] == keys, order[place], NOTHING)

    def _parts(self, rows: Positions, sample: Ids, thread: Ids) -> Floats:
        """Share of the sample of each thread; 0 for threads that cannot have submitted the work."""
        library = self._submitters.libraries[thread][sample]
        calls = self._submitters.calls(library, rows.stack)
        if len(rows):
            calls |= ~_any(calls, sample)[sample] & self._submitters.may_call(library, rows.stack)
        if len(rows):
            holds = rows.holds_work & (rows.stack != self._nodes) & (library != NO_LIBRARY)
            holds &= calls | ~_any(calls, sample)[sample]
            calls = np.where(_any(holds, sample)[sample], holds, calls)
        creator = calls & self._frames.keeps_teams[library] & (rows.thread == self._submitters.creator[thread][sample])
        calls = np.where(_any(creator, sample)[sample], creator, calls) if len(rows) else calls
        running = calls & rows.running
        by_cpu = np.where(calls, rows.used_ns, 0).astype(np.float64)
        used = np.bincount(sample, by_cpu) if len(rows) else by_cpu
        even = calls.astype(np.float64)
        unknown = rows.running & (rows.stack != self._nodes) & self._submitters.unsampled[rows.stack]
        unknown &= library != NO_LIBRARY
        if not len(rows):
            return even
        choices = (_any(running, sample)[sample], used[sample] > 0, _any(calls, sample)[sample])
        return np.select(choices, (running.astype(np.float64), by_cpu, even), unknown.astype(np.float64))


def _any(flags: NDArray[np.bool_], sample: Ids) -> NDArray[np.bool_]:
    """True for samples of which one row has the flag."""
    return np.asarray(np.bincount(sample, flags) > 0)
