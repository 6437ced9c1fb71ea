"""The weights of CPU samples, and the reasons of waits.

Weights are measured times, except for the first sample of each thread and for the signal sampler's. A sample stands for
the CPU time since the one before. The first one has none before it: its weight is not the time since the thread began,
because threads that ended sooner have no sample at all. Where the recorder's schedule is stationary, every instant has
the same chance to be sampled, one in an interval, so the first sample gets the inverse of that (Horvitz and Thompson,
1952): the interval, for each expiration of its timer. Sums over many threads, each shorter than the interval, are right
then; for a thread that lives longer, the interval takes the place of its unsampled ends. The signal sampler's rows of
one tick hold the elapsed time of the whole tick each: it is shared out among them.

The reason of a wait follows from the system call in which a thread waited, and from the kind of its file descriptor.
Numbers of system calls are those of the recording's machine; on one that is not known here only the descriptors tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import filled, known, numbers, to_arrow
from tachograph.format.enumerations import Origin

from ..recording.opened import Recording
from ..recording.tables import BATCH_ROWS

_STATIONARY = "stationary"


def weighted_batches(recording: Recording, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Batches of ``cpu`` with at least these columns; in cpu_ns and system_ns, first samples have their weights.

    A batch has at most ``rows`` rows.
    """
    interval = recording.interval_ns
    if interval is None or recording.manifest.parameters.get("schedule") != _STATIONARY:
        yield from recording.batches("cpu", columns, rows)
        return
    needed = [*columns, *(name for name in ("overruns", "origin") if name not in columns)]
    first = _Firsts(_begun_here(recording))
    for batch in recording.batches("cpu", needed, rows):
        firsts = first.rows(numbers(batch.column("thread")))
        yield _reweighted(batch, firsts, interval) if len(firsts) else batch


def _begun_here(recording: Recording) -> NDArray[np.bool_]:
    """True for threads whose first row is their first sample: not if an earlier window of the same run has that."""
    since = recording.rotated_from_ns
    if since is None:
        return np.ones(len(recording.all_threads), np.bool_)
    return np.asarray(recording.all_threads.start_ns.filled(since) > since, np.bool_)


class _Firsts:
    """Finds the first row of each selected thread, batch after batch."""

    def __init__(self, threads: NDArray[np.bool_]) -> None:
        self._unseen = threads

    def rows(self, thread: NDArray[np.integer]) -> NDArray[np.integer]:
        if not self._unseen.any():
            return np.empty(0, np.int64)
        new = np.flatnonzero(self._unseen[thread])
        _, places = np.unique(thread[new], return_index=True)
        self._unseen[thread[new]] = False
        return new[places]


def _reweighted(batch: pa.RecordBatch, rows: NDArray[np.integer], interval_ns: int) -> pa.RecordBatch:
    """The batch with the weights of some rows set; those that were not taken by the timer keep theirs."""
    rows = rows[numbers(batch.column("origin"))[rows] == Origin.TIMER]
    weight = numbers(batch.column("cpu_ns")).copy()
    overruns = numbers(batch.column("overruns"))[rows].astype(np.int64)
    set_to = np.minimum(interval_ns * (1 + overruns), np.iinfo(np.int64).max // 2)
    factor = set_to / np.maximum(weight[rows], 1)
    weight[rows] = set_to
    changed = {"cpu_ns": to_arrow(weight)}
    if "system_ns" in batch.schema.names:
        system = batch.column("system_ns")
        valid = known(system)
        values = filled(system, 0).copy()
        values[rows] = np.minimum(values[rows] * factor, set_to).astype(np.int64)
        changed["system_ns"] = to_arrow(values, valid)
    names = batch.schema.names
    return pa.RecordBatch.from_arrays([changed.get(name, batch.column(name)) for name in names], names)


def whole_ticks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that never end in the middle of a run of equal ``time_ns``."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        rows = pa.concat_batches([held, batch]) if held is not None else batch
        times = numbers(rows.column("time_ns"))
        cut = int(np.searchsorted(times, times[-1])) if len(times) else 0
        if cut:
            yield rows.slice(0, cut)
        held = rows.slice(cut)
    if held is not None and held.num_rows:
        yield held


def share_ticks(
    time_ns: NDArray[np.int64], process: NDArray[np.int64], elapsed_ns: NDArray[np.float64], interval_ns: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weight and delay of rows of the signal sampler, each of which carries the elapsed time of its whole tick.

    The elapsed virtual time T is shared out evenly among the threads that were executing, so that the total is the
    time that passed; the delay is the same share of T - q (Scalene 2023, section 2.1 and 2.2). T below q has no delay.
    """
    order = np.lexsort((process, time_ns))
    changed = (np.diff(time_ns[order]) != 0) | (np.diff(process[order]) != 0)
    tick = np.empty(len(order), np.int64)
    tick[order] = np.concatenate(([0], np.cumsum(changed))) if len(order) else []
    rows = np.bincount(tick)[tick]
    return elapsed_ns / rows, np.maximum(elapsed_ns - interval_ns, 0.0) / rows


UNKNOWN, LOCK, EITHER = "unknown", "lock", "lock or GIL"

BY_TARGET: Mapping[str, str] = {
    "file": "file",
    "socket": "socket",
    "pipe": "pipe",
    "terminal": "terminal",
    "gpu": "GPU",
    "gil": "GIL",
    "lock": LOCK,
}
"""By the names of the enumeration ``target``; these tell more than the call does."""

_X86_64: Mapping[str, tuple[int, ...]] = {
    # futex, futex_waitv, futex_wait: by the call alone, as before format 1.4, a lock looks the same as the GIL
    EITHER: (202, 449, 455),
    "sleep": (35, 230),
    "child process": (58, 61, 247),  # vfork until the child has its program, wait4, waitid
    "socket": (42, 43, 44, 45, 46, 47, 288, 299, 307),
    "events": (7, 23, 232, 270, 271, 281, 441),  # poll, select and epoll: any of several descriptors, or a timer
    "file": (26, 73, 74, 75, 162, 208, 277, 306),  # msync, flock, fsync and others
    "signal": (34, 128, 130),
}
_AARCH64: Mapping[str, tuple[int, ...]] = {
    EITHER: (98, 449, 455),
    "sleep": (101, 115),
    "child process": (95, 260),
    "socket": (202, 203, 206, 207, 211, 212, 242, 243, 269),
    "events": (22, 72, 73, 441),
    "file": (4, 32, 81, 82, 83, 84, 227, 267),
    "signal": (133, 137),
}
BY_CALL: Mapping[str, Mapping[str, tuple[int, ...]]] = {"x86_64": _X86_64, "aarch64": _AARCH64}
"""By machine, the numbers of system calls that wait, by reason."""

REASONS = tuple(dict.fromkeys((UNKNOWN, *BY_TARGET.values(), *_X86_64)))
"""The names of reasons; a number in ``WaitBatch.reason`` is a place here."""

_MACHINE = "x86_64"


class Reasons:
    """Finds the reason of waits in a recording of ``machine`` whose enumeration ``target`` has the names ``targets``.

    A recording of format 1.0 does not say its machine, and is of x86-64 as all are.
    """

    def __init__(self, targets: list[str], machine: str | None) -> None:
        self._by_target = np.array([REASONS.index(BY_TARGET.get(name, UNKNOWN)) for name in targets] + [0], np.int64)
        calls = BY_CALL.get(machine or _MACHINE, {})
        self._by_call = np.zeros(1 + max((max(syscalls) for syscalls in calls.values()), default=0), np.int64)
        for name, syscalls in calls.items():
            self._by_call[list(syscalls)] = REASONS.index(name)

    def of(self, syscall: NDArray[np.int64], target: NDArray[np.integer]) -> NDArray[np.int64]:
        """The reason of each wait; -1 is not a system call."""
        in_table = (syscall >= 0) & (syscall < len(self._by_call))
        by_call = np.where(in_table, self._by_call[np.where(in_table, syscall, 0)], 0)
        # A target that this version does not know tells nothing.
        by_target = self._by_target[np.minimum(target, len(self._by_target) - 1)]
        return np.asarray(np.where(by_target > 0, by_target, by_call), np.int64)
