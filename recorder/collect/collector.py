"""Works beside the program while it runs: keeps the spool small, reads sources early, and gets ready for the end.

To keep it small, rows are moved into parts, and disk blocks that ended processes allocated and did not use are freed:
a process that lived for a second has used a few kilobytes of megabytes. Thousands of such processes, as in a build,
would fill a disk.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tachograph.format.spool.directory import MAX_SEGMENT_SIZE
from tachograph.format.spool.segment import used_length
from tachograph.recorder import clock
from tachograph.recorder.collect.memory_files import MemoryFiles
from tachograph.recorder.collect.room import free_bytes

if TYPE_CHECKING:
    from tachograph.format import SpoolDirectory, SpoolProcess
    from tachograph.recorder.collect.source_texts import SourceScout, SourceStore


QUIET_START_S = 0.1
FIRST_POLL_S, LONGEST_POLL_S = 0.5, 4.0
LONGEST_POLL_OF_WINDOWS_S = 0.5
SETTLING_S = 1.0
"""A segment may still change for this long after the next one was begun (SPOOL.md)."""

SEGMENTS_PER_PART = 4
ROOM_OF_PART = 1 << 20
"""Bytes that are free when a part is written of four segments of 1 MB: nearly all parts take less."""

ROOM_WAIT_S, ROOM_POLL_S = 2.0, 0.02
"""How long that room is waited for, and how often it is looked for: some programs fill a disk and empty it again."""

PATIENCE_S, LONGEST_PATIENCE_S = 1.0, 20.0
"""After how long a part is tried again for which there was no room, and the longest that this becomes."""

MOST_OF_A_PROCESSOR = 0.02
"""Rehearsals of the end after the first take at most this part of the time."""

NICENESS = 10
"""The program comes first where there are not enough processors for both."""


class Rotation(Protocol):
    """The interface through which the collector closes the windows of a rotated recording."""

    @property
    def unsettled(self) -> bool:
        """True if the spool still has what belongs to a closed window: then no segments may be put together."""

    def wait_s(self) -> float | None:
        """Seconds until the next window is due; None if that does not depend on time."""

    def due(self, written: int) -> bool:
        """True if the present window is to be closed, in which ``written`` bytes were written."""

    def ask_for_snapshot(self) -> None:
        """Close the present window as soon as it can be, and keep it and those before it."""

    def put_off(self) -> None:
        """Leave the window open for a while: it cannot be closed now."""

    def rotate(self, sources: SourceStore, done: clock.Flag) -> set[str] | None:
        """Close the present window; the prefixes of the processes that ended in it, None if it was not closed."""


class Collector:
    """The thread beside the program.

    ``prepare`` is called in it at once, ``warm_up`` after a moment: it takes time of a processor, and the program is
    starting up as well. It is left out if the program ends before. ``memory`` holds what processes write. ``rehearse``
    is called more and more rarely (``is_rehearsed_after``), within its part of a processor, with what tells whether to
    give it up. With ``at_once`` the program runs already, and may end the recording soon: ``warm_up`` and the first
    ``rehearse`` wait for nothing.
    """

    def __init__(
        self,
        spool: Path,
        prepare: Callable[[], SourceScout],
        warm_up: Callable[[], None],
        rotation: Callable[[], Rotation] | None = None,
        memory: MemoryFiles | None = None,
        rehearse: Callable[[SpoolDirectory, Callable[[], bool]], None] | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        self._rehearse = rehearse
        self._at_once = at_once
        self._memory = MemoryFiles(spool) if memory is None else memory
        self._spool_path = spool
        self._make_rotation = rotation
        self._rotation: Rotation | None = None
        # Bytes that processes which are over have written in the present window.
        self._written = 0
        self._prepare = prepare
        self._warm_up = warm_up
        self._done = clock.Flag()
        # Set when the thread is asked for its end or a snapshot, while it may be waiting.
        self._woken = clock.Flag()
        self._asked = clock.Flag()
        # How many snapshots a process had asked for when it was last looked at; missing: none.
        self._requests: dict[str, int] = {}
        self._currents: dict[str, tuple[int, float]] = {}
        self._settled: dict[str, int] = {}
        # Processes that have ended and need no look any more: there may be thousands.
        self._over: set[str] = set()
        self._begun_s, self._rehearsed_s = time.monotonic(), 0.0
        self._makes_parts = True
        # Where there was no room for a part: when it is tried again, in seconds, and how long to wait if it fails.
        self._parts_again, self._patience = 0.0, PATIENCE_S
        self._thread = threading.Thread(target=self._run, name="tachograph collector", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the step that is being done."""
        self._done.set()
        self._woken.set()
        # The program has ended, and its caller waits for us: no low priority any more.
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._thread.native_id or 0, 0)
        self._thread.join()

    def ask_for_snapshot(self) -> None:
        """Close the present window soon, and keep it and those before it; returns at once."""
        self._asked.set()
        self._woken.set()

    def _rest(self, seconds: float) -> bool:
        """Wait until the time is over or the thread gets a request; True if it is to end."""
        self._woken.wait(seconds)
        self._woken.clear()
        return self._done.is_set()

    def _run(self) -> None:
        with suppress(PermissionError):  # some containers do not even let a thread step back
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        scout = self._prepare()
        if not self._done.wait(0 if self._at_once else QUIET_START_S):
            self._warm_up()
            self._accompany(scout)
        self._look_last(scout)

    def _look_last(self, scout: SourceScout) -> None:
        """Where the rights of processes count, read what they named last while the first is still known."""
        if scout.store.rights is None or not scout.store.rights.watching:
            return  # the end reads it
        from tachograph.format import FormatError, SpoolDirectory

        with suppress(FormatError, OSError):  # the spool has been taken away; the end will say so
            scout.look(SpoolDirectory(self._spool_path).processes(without=self._over))

    def _accompany(self, scout: SourceScout) -> None:
        from tachograph.format import SpoolDirectory

        spool = SpoolDirectory(self._spool_path)
        rotation = self._rotation = None if self._make_rotation is None else self._make_rotation()
        poll, looks = FIRST_POLL_S, 0
        if self._at_once:
            self._rehearse_end(spool)
        while not self._rest(poll if rotation is None else _until_due(rotation, poll)):
            # Where processes come and go, what they leave is not to heap up, and what they run is to be read before
            # they end: afterwards nothing tells what they were allowed to read.
            changed = self.step(spool, scout, time.monotonic())
            poll = FIRST_POLL_S if changed else min(2 * poll, LONGEST_POLL_S)
            if rotation is not None:
                self._rotate(rotation, spool, scout)
            looks += 1
            if is_rehearsed_after(looks):
                self._rehearse_end(spool)

    def _rehearse_end(self, spool: SpoolDirectory) -> None:
        allowed_s = MOST_OF_A_PROCESSOR * (time.monotonic() - self._begun_s)
        if self._rehearse is not None and not self._done.is_set() and self._rehearsed_s <= allowed_s:
            worked = time.thread_time()
            self._rehearse(spool, self._done.is_set)
            self._rehearsed_s += time.thread_time() - worked
            if not self._done.is_set():
                _release_unused_memory()

    def step(self, spool: SpoolDirectory, scout: SourceScout, now: float) -> bool:
        """Look once: read the sources of new code, make parts, trim what has ended. ``now`` is in seconds.

        Returns whether processes have come or gone since the last look.
        """
        from tachograph.format import FormatError

        over, living = len(self._over), set(self._currents)
        try:
            processes = spool.processes(without=self._over)
            scout.look(processes)
            for process in processes:
                if process.archived:
                    # There may be thousands, which have no files. They are in no rotated recording.
                    self._forget(process.prefix, scout)
                    continue
                self._note_settled(process, now)
                self._note_request(process)
                if self._may_make_parts and now >= self._parts_again:
                    self._try_parts(spool, process, now)
                self._put_away(spool, process, scout)
        except FormatError:
            return False  # the spool has been taken away; the end will say so
        except OSError:
            pass  # it is looked at again
        return len(self._over) > over or not self._currents.keys() <= living

    def _rotate(self, rotation: Rotation, spool: SpoolDirectory, scout: SourceScout) -> None:
        """Close the window if it is due, and forget the processes that are gone with it."""
        from tachograph.format import FormatError

        if self._asked.is_set():
            self._asked.clear()
            rotation.ask_for_snapshot()
        try:
            living = spool.processes(without=self._over)
        except FormatError:
            rotation.put_off()
            return  # the spool has been taken away; the end will say so
        if rotation.due(self._written + sum(_written_by(process, scout) for process in living)):
            gone = rotation.rotate(scout.store, self._done)
            if gone is not None:
                self._over -= gone
                self._written = 0

    def _put_away(self, spool: SpoolDirectory, process: SpoolProcess, scout: SourceScout) -> None:
        """Trim what a process left that is over, after a last look at what it has written."""
        if process.control is None or self._memory.lives(process.prefix, process.pid, process.control.start_ns):
            return
        if not self._memory.settle(process.prefix):
            return  # no room on the disk: it stays in memory, and is tried again
        process.control = spool.control(process.prefix) or process.control
        self._note_request(process)
        self._requests.pop(process.prefix, None)
        scout.look([process])
        self._written += _written_by(process, scout)
        trim(process)
        self._forget(process.prefix, scout)

    def _forget(self, prefix: str, scout: SourceScout) -> None:
        scout.forget(prefix)
        self._over.add(prefix)
        self._currents.pop(prefix, None)
        self._settled.pop(prefix, None)

    def _note_settled(self, process: SpoolProcess, now: float) -> None:
        if process.control is None:
            return
        current = process.control.current_segment
        earlier, since = self._currents.setdefault(process.prefix, (current, now))
        if now - since >= SETTLING_S:
            # What came before the segment that was current then has not been for at least as long.
            self._settled[process.prefix] = earlier
            self._currents[process.prefix] = current, now

    def _note_request(self, process: SpoolProcess) -> None:
        count = 0 if process.control is None else process.control.snapshots_requested
        if self._rotation is not None and count != self._requests.get(process.prefix, 0):
            self._requests[process.prefix] = count
            self._rotation.ask_for_snapshot()

    @property
    def _may_make_parts(self) -> bool:
        return self._makes_parts and not (self._rotation is not None and self._rotation.unsettled)

    def _try_parts(self, spool: SpoolDirectory, process: SpoolProcess, now: float) -> None:
        """Make parts if there is room. Else the segments stay as they are: nothing is lost, they only take more."""
        try:
            self._make_parts(spool, process)
        except ImportError:
            self._makes_parts = False  # pyarrow does not work here, and never will
        except OSError:
            self._parts_again = now + self._patience
            self._patience = min(2 * self._patience, LONGEST_PATIENCE_S)

    def _make_parts(self, spool: SpoolDirectory, process: SpoolProcess) -> None:
        settled = self._settled.get(process.prefix, 0)
        ready = [
            sequence
            for sequence in process.segments
            if sequence < settled and not self._memory.holds(process.prefix, sequence)
        ]
        for batch in _batches(ready):
            if len(batch) < SEGMENTS_PER_PART:
                return  # more will come, or one is missing in between: the end counts it
            self._wait_for_room()
            _make_part(spool, process, batch, self._wait_for_room)
            self._patience = PATIENCE_S

    def _wait_for_room(self) -> None:
        """Wait a moment until there is room for a part. Raises OSError if there is none, or at the end."""
        deadline = time.monotonic() + ROOM_WAIT_S
        while free_bytes(self._spool_path) < ROOM_OF_PART:
            if time.monotonic() >= deadline or self._done.wait(ROOM_POLL_S):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def compress(self, prefixes: Container[str]) -> bool:
        """Make parts of the segments of processes that write no more, after the end; True if one was made.

        What is still in memory may then find room on a disk that is full.
        """
        from tachograph.format import FormatError, SpoolDirectory

        made = False
        if not self._may_make_parts:
            return made
        spool = SpoolDirectory(self._spool_path)
        try:
            for process in spool.processes():
                if process.prefix not in prefixes:
                    continue
                whole = [seq for seq in process.segments if not self._memory.holds(process.prefix, seq)]
                for batch in _batches(whole):
                    _make_part(spool, process, batch)
                    made = True
        except (OSError, ImportError, FormatError):
            pass  # no room for it, most likely: the segments stay as they are
        return made


def _make_part(
    spool: SpoolDirectory, process: SpoolProcess, batch: Sequence[int], ready: Callable[[], None] | None = None
) -> None:
    """Put consecutive segments into a part.

    Errors:
        OSError: there is no room for it, for example; the segments are still there.
    """
    from tachograph.format import write_part

    write_part(spool, process.prefix, map(process.segment, batch), ready)
    import_module("pyarrow.parquet")  # the end reads it by that
    _release_unused_memory()
    for sequence in batch:
        process.segment_path(sequence).unlink()


def _batches(sequence: Sequence[int]) -> Iterator[list[int]]:
    """Consecutive numbers together, and not too many."""
    batch: list[int] = []
    for number in sequence:
        if batch and (number != batch[-1] + 1 or len(batch) == SEGMENTS_PER_PART):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def is_rehearsed_after(looks: int) -> bool:
    """True if the end is rehearsed after so many looks: 1, 2, 4 and so on.

    The program goes on to call native functions that it had not called before, and finding the place of one takes
    milliseconds that the end need not take.
    """
    return looks & (looks - 1) == 0


def _release_unused_memory() -> None:
    """Give back to the system what allocators keep of memory that was used for a moment.

    Of a part that is some 15 MB, of a rehearsal as much and more. The program may share a container's memory with us,
    and they would keep it to the end.
    """
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # GNU's C library has it
    if trim is not None:
        trim(ctypes.c_size_t(0))


def _until_due(rotation: Rotation, poll: float) -> float:
    """Seconds until the next poll, or until a window may end, if that is before."""
    due = rotation.wait_s()
    return min(poll, LONGEST_POLL_OF_WINDOWS_S, LONGEST_POLL_OF_WINDOWS_S if due is None else due)


def _written_by(process: SpoolProcess, scout: SourceScout) -> int:
    """Bytes that a process has written in the present window."""
    if process.control is None:
        return 0
    first = max((part.last + 1 for part in process.parts if part.window), default=0)
    sequence, position = scout.position(process.prefix)
    return max(0, sequence - first) * process.control.segment_size + position


PAGE, BLOCK = 4096, 512

_KEEP_SIZE_AND_PUNCH = 1 | 2


def trim(process: SpoolProcess) -> None:
    """Free what no record uses in the segments of a process that has ended. What was written stays as it is.

    That is the rest of the current segment, the one that was prepared for afterwards, and the places of pending blocks
    behind the last that is used. The files keep their size: processes that still have one mapped are
    unaffected.
    """
    assert process.control is not None
    current = process.control.current_segment
    with suppress(OSError):  # it was made into a part, or the file system cannot do it: then it stays as large as it is
        process.segment_path(current + 1).unlink(missing_ok=True)
        _free_tail(process.segment_path(current))
        _free_tail(process.control_path)


def _free_tail(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        size = status.st_size
        if size > MAX_SEGMENT_SIZE:
            return  # it was made to grow: no reader takes it
        if status.st_blocks * BLOCK < size:
            return  # a copy from memory, made when the process had ended: it takes no more than it needs
        used = used_length(os.pread(descriptor, size, 0))
        start = (used + PAGE - 1) // PAGE * PAGE
        if start < size:
            fallocate = ctypes.CDLL(None, use_errno=True).fallocate
            fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
            fallocate(descriptor, _KEEP_SIZE_AND_PUNCH, start, size - start)
    finally:
        os.close(descriptor)
