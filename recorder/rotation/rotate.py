"""Rotates a recording: closes one window after the other while the program runs, and keeps the newest."""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.format import FormatError, SpoolDirectory
from tachograph.format.atomic import unfinished
from tachograph.format.plain_records import replaced
from tachograph.format.spool.layout import ControlState
from tachograph.format.spool.process_log import CUT_LOG_NAME, LOG_NAME, Event
from tachograph.recorder import clock
from tachograph.recorder.collect.descendants import ask_to_turn
from tachograph.recorder.collect.finish import UnfinishedError, make_tables
from tachograph.recorder.collect.held_folder import ReplacedError
from tachograph.recorder.collect.memory_files import MemoryFiles
from tachograph.recorder.collect.output import MANIFEST, ROOM_AT_START, SEGMENT_SIZE, SPOOL
from tachograph.recorder.collect.removal import discard_held, discard_window, drop_window
from tachograph.recorder.collect.room import free_bytes
from tachograph.recorder.collect.table_writer import TableProcess
from tachograph.recorder.problems import reason
from tachograph.recorder.rotation.journal import (
    JOURNAL,
    Journal,
    discard_hidden,
    first_number,
    replace_counters,
    settle,
    window_name,
)
from tachograph.recorder.rotation.window_handover import ClosedSpool, WindowCut

if TYPE_CHECKING:
    from tachograph.format import Manifest, SpoolProcess
    from tachograph.format.spool.directory import ControlFile
    from tachograph.format.spool.process_log import ProcessLog
    from tachograph.recorder.collect.held_folder import HeldFolder
    from tachograph.recorder.collect.source_texts import SourceStore
    from tachograph.recorder.rotation.rotation_settings import Rotate

PATIENCE_S = 2.0
"""How long processes are given to leave their segments; what one does not is in the next window."""

SETTLING_S = 1.0
"""A segment may still change for this long after it was left (SPOOL.md)."""

RETRY_S = 5.0
"""How long a window stays open after it could not be closed, before that is tried again."""

POLL_S = 0.02
_NO_LOSSES = (0, 0, 0, 0, (0,) * 64)

MOST_SAVED = 1000
"""Windows that the snapshots of one run keep, but for the last snapshot's own."""


@dataclass(frozen=True)
class Kept:
    """The recording of a window that this run has made."""

    path: Path
    uuid: str


@dataclass(frozen=True)
class _Closed:
    """A window that was closed at ``moment`` (time.monotonic) and whose recording has its name."""

    journal: Journal
    created_utc: str
    moment: float
    snapshot: bool


class Rotation:
    """The windows of one recording. Everything but the constructor is called by one thread.

    ``turn_gpu`` begins another segment of GPU readings and tells its number and whether GPUs are read at all.
    ``memory`` holds what processes write. ``hand_over`` takes the recordings of closed windows, with their uuids: then
    none of them is kept or deleted here.
    """

    def __init__(
        self,
        folder: HeldFolder,
        manifest: Manifest,
        when: Rotate,
        keep: int,
        turn_gpu: Callable[[], tuple[int, bool]],
        memory: MemoryFiles | None = None,
        hand_over: Callable[[Path, str], None] | None = None,
    ) -> None:
        assert folder.parent is not None
        self._folder, self._parent = folder, folder.parent
        self._spool = Path(folder.here, SPOOL)
        self._beside = Path(folder.parent.here, folder.name)
        self._memory = MemoryFiles(self._spool) if memory is None else memory
        self._manifest = manifest
        self._when = when
        self._keep = keep
        self._turn_gpu = turn_gpu
        self._hand_over = hand_over
        self._run = manifest.uuid
        self._tables = TableProcess()
        discard_hidden(self._beside)
        self._first = self._number = first_number(self._beside)
        self._began = time.monotonic()
        self._not_before = self._began
        self._unsettled: _Closed | None = None
        # What the manifest says of the present window alone.
        self._notes: list[str] = []
        self._next_note: str | None = None
        self._wants_snapshot = False
        self.kept: deque[Kept] = deque()
        self.closed = self.saved = 0
        start_ns = (manifest.clock or {}).get("monotonic_ns")
        manifest.window = self._window(start_ns)
        self._write_manifest()

    def wait_s(self) -> float | None:
        """Seconds until the next window is due; None if that does not depend on time."""
        if self._when.seconds is None:
            return None
        return max(0.0, max(self._began + self._when.seconds, self._not_before) - time.monotonic())

    def due(self, written: int) -> bool:
        """True if the present window is to be closed, in which ``written`` bytes were written."""
        if time.monotonic() < self._not_before:
            return False
        by_itself = self.wait_s() == 0.0 if self._when.size is None else written >= self._when.size
        return by_itself or self._wants_snapshot

    @property
    def unsettled(self) -> bool:
        """True if the spool still has what belongs to a closed window: then no segments may be put together."""
        return self._unsettled is not None

    def ask_for_snapshot(self) -> None:
        """Close the present window as soon as it can be, and never delete it and the kept ones.

        Where snapshots have kept ``MOST_SAVED`` windows, none is taken any more: a program that asks for one with every
        request would fill the disk.
        """
        if self.saved >= MOST_SAVED:
            self._note(f"was asked for a snapshot in vain: those before keep {self.saved} windows already")
            return
        self._wants_snapshot = True

    def put_off(self) -> None:
        """Leave the window open for a while: it cannot be closed now."""
        self._not_before = time.monotonic() + RETRY_S

    def is_helper(self, pid: int) -> bool:
        """True if ``pid`` is the process that makes the tables of windows."""
        return self._tables.pid == pid

    def rotate(self, sources: SourceStore, done: clock.Flag) -> set[str] | None:
        """Close the present window; the processes (their prefixes) that ended in it, or None if it was not closed."""
        spool = SpoolDirectory(self._spool)
        try:
            if self._unsettled is None:
                self._unsettled = self._close(spool, sources, done)
            return None if self._unsettled is None else self._go_on(spool, self._unsettled)
        except (OSError, FormatError, UnfinishedError) as error:
            self.put_off()
            note = f"could not be closed when it was due ({_why(error)}), so it is longer"
            if self._unsettled is None:
                self._note(note)
            else:  # it is closed, and waits for room: the one after it becomes longer
                self._next_note = note
            return None
        finally:
            self._tables.end()

    def end(self) -> str | None:
        """Make the last window ready to be finished; in a few words why that is not possible, if so."""
        if self._unsettled is None:
            return None
        # The rows of the closed window are still in the spool: as they are, they would be told twice.
        try:
            self._go_on(SpoolDirectory(self._spool), self._unsettled)
        except (OSError, FormatError, UnfinishedError) as error:
            return _why(error)
        finally:
            self._tables.end()
        return None

    def _go_on(self, spool: SpoolDirectory, closed: _Closed) -> set[str]:
        """Begin the next window, now that the recording of the one before it has its name."""
        self._tables.start((self._folder,))
        self._tables.call(settle, spool, closed.journal, os.getpid())
        self._unsettled = None
        journal = closed.journal
        self.closed += 1
        self._began = closed.moment
        self._number = journal.window + 1
        self._manifest.window = self._window(journal.end_ns)
        self._manifest.created_utc = closed.created_utc
        self._manifest.notes[:] = [note for note in self._manifest.notes if note not in self._notes]
        self._notes.clear()
        if self._next_note is not None:
            self._note(self._next_note)
            self._next_note = None
        self._write_manifest()
        if self._hand_over is not None:
            self._hand_over(Path(self._parent.path, journal.name), journal.uuid)
        else:
            self.kept.append(Kept(self._beside.with_name(journal.name), journal.uuid))
        if closed.snapshot:
            # Only this run deletes windows, and only those that it remembers. They are not renamed: they may be open
            # in a reader, and a kill in the midst of many renames would leave a part of them to be deleted.
            self.saved += len(self.kept)
            self.kept.clear()
        self._drop_oldest()
        return {prefix for prefix, each in journal.turned.items() if each.over}

    def _write_manifest(self) -> None:
        with suppress(OSError):  # no room: it keeps the old one, and a recovery asks the process log
            self._manifest.write(Path(self._folder.here, MANIFEST))

    def _window(self, start_ns: int | None) -> dict[str, object]:
        """The manifest's entry for the present window."""
        return {"number": self._number, "first": self._first, "start_ns": start_ns, "run": self._run}

    def _name(self) -> str:
        # Something else may have taken the name meanwhile.
        while os.path.lexists(self._beside.with_name(window_name(self._beside, self._number))):
            self._number += 1
        return window_name(self._beside, self._number)

    def _close(self, spool: SpoolDirectory, sources: SourceStore, done: clock.Flag) -> _Closed | None:
        """Make the recording of the present window; None if the program has ended meanwhile."""
        moment, end_ns = time.monotonic(), clock.monotonic_ns()
        created = datetime.now(UTC).isoformat(timespec="seconds")
        turned, gpu_before, gpu = self._turn(spool, end_ns, done)
        if done.is_set():
            return None  # what there is belongs to the last window
        journal = Journal(self._name(), str(uuid.uuid4()), self._number, end_ns, gpu_before, turned)
        closed = _Closed(journal, created, moment, self._wants_snapshot)
        self._write(ClosedSpool(spool.path, turned, end_ns, gpu_before), closed, sources, gpu=gpu)
        self._wants_snapshot = False
        return closed

    def _turn(self, spool: SpoolDirectory, end_ns: int, done: clock.Flag) -> tuple[dict[str, WindowCut], int, bool]:
        """Let every process leave its segment, and wait until none writes into it any more."""
        self._memory.copy()
        processes = spool.processes()
        # A process that has left its segment needs a new one at once, and stops recording where there is no room.
        self._check_room(sum(writes(process, self._memory) for process in processes))
        gpu_before, gpu = self._turn_gpu()
        same = still_the_same(processes, spool.process_log())
        requested: dict[str, int] = {}
        for process in processes:
            if process.prefix in same and writes(process, self._memory):
                assert process.control is not None
                requested[process.prefix] = process.control.current_segment + 1
                ask_to_turn(spool.path, process.prefix, requested[process.prefix], self._memory)
        # Writers open it for each record: those that have it open are through with that before we look.
        if not (spool.path / CUT_LOG_NAME).exists():
            with suppress(FileNotFoundError):
                (spool.path / LOG_NAME).rename(spool.path / CUT_LOG_NAME)
        deadline = time.monotonic() + PATIENCE_S
        late = set(requested)
        while late and time.monotonic() < deadline and not done.wait(POLL_S):
            self._memory.copy()
            late = {prefix for prefix in late if not _has_turned(spool.control(prefix), requested[prefix])}
        done.wait(SETTLING_S)
        self._memory.copy()
        self._memory.settle_over()
        ends: dict[int, list[int]] = {}
        for record in spool.process_log().records:
            if record.event is Event.END:
                ends.setdefault(record.pid, []).append(record.time_ns)
        turned = {}
        for process in processes:
            moments = ends.get(process.pid, ()) if process.prefix in same else ()
            ended_ns = min((moment for moment in moments if moment >= process.start_ns), default=None)
            turned[process.prefix] = how_far(
                process, spool.control(process.prefix), requested.get(process.prefix), ended_ns, end_ns
            )
        return turned, gpu_before, gpu

    def _check_room(self, processes: int) -> None:
        if free_bytes(self._spool) < ROOM_AT_START + 2 * SEGMENT_SIZE * processes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _write(self, spool: ClosedSpool, closed: _Closed, sources: SourceStore, *, gpu: bool) -> None:
        """Write the recording of the window, and give it its name."""
        journal = closed.journal
        hidden, path = (self._beside.with_name(name) for name in (unfinished(journal.name), journal.name))
        discard_window(hidden)
        manifest = replaced(
            self._manifest,
            uuid=journal.uuid,
            window={
                **(self._manifest.window or {}),
                "number": journal.window,
                "end_ns": journal.end_ns,
                **({"snapshot": True} if closed.snapshot else {}),
            },
            parameters={**self._manifest.parameters, "gpu": gpu},
            notes=list(self._manifest.notes),
        )
        place = self._parent.make(hidden.name)
        try:
            self._tables.start((self._folder, place))
            self._tables.call(make_tables, Path(place.here), manifest, sources, spool=spool, ended_ns=journal.end_ns)
            journal.write(spool.path)
            if os.path.lexists(path):  # since the name was chosen
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            if not place.has_its_name():
                raise ReplacedError(0, "another folder has the name of what was made")
            hidden.rename(path)
        except BaseException:
            discard_held(place)
            (spool.path / JOURNAL).unlink(missing_ok=True)
            raise
        finally:
            place.close()

    def _note(self, what: str) -> None:
        """Say something about the present window."""
        note = f"window {self._number} {what}"
        if note not in self._notes:
            self._notes.append(note)
            self._manifest.notes.append(note)

    def _drop_oldest(self) -> None:
        while len(self.kept) > self._keep:
            oldest = self.kept.popleft()
            drop_window(oldest.path, oldest.uuid)  # it may have been moved, or replaced: only our own is deleted


def writes(process: SpoolProcess, memory: MemoryFiles) -> bool:
    """True if a process still writes into its spool."""
    control = process.control
    return control is not None and control.recording and memory.lives(process.prefix, process.pid, control.start_ns)


def still_the_same(processes: Sequence[SpoolProcess], log: ProcessLog) -> set[str]:
    """The prefixes of those whose process id has not gone over to another program (exec) or another process."""
    latest = {process.pid: process.prefix for process in processes}
    times: dict[tuple[Event, int], int] = {}
    for record in log.records:
        times[record.event, record.pid] = max(record.time_ns, times.get((record.event, record.pid), 0))

    def replaced(process: SpoolProcess) -> bool:
        exec_ns, start_ns = (times.get((event, process.pid), 0) for event in (Event.EXEC, Event.START))
        return process.start_ns <= exec_ns < start_ns

    return {process.prefix for process in processes if latest[process.pid] == process.prefix and not replaced(process)}


def how_far(
    process: SpoolProcess, control: ControlFile | None, asked: int | None, ended_ns: int | None, end_ns: int
) -> WindowCut:
    """The part of a process that belongs to the window which ends at ``end_ns``.

    ``asked`` is the segment that it was asked to go on in, ``ended_ns`` when it said that it ended.
    """
    over = asked is None if ended_ns is None else ended_ns <= end_ns
    if over:
        # One that had said its end may still have been there.
        highest = max([-1, *process.segments, *(part.last for part in process.parts)])
        return WindowCut(highest if control is None else control.current_segment, control, over=True)
    if control is None:
        return WindowCut(-1, None, over=False)
    # It may have ended since: that is told in the next window. So are the blocks that have found no place yet.
    lived = control._replace(state=ControlState.RECORDING, end_ns=0, pending_unkept=0, copied_ns=0)
    if asked is None:
        return WindowCut(control.current_segment, lived, over=False)
    if _has_turned(lived, asked):
        return WindowCut(asked - 1, lived, over=False)
    # It is stopped, or was about to end: all that it has written is in the next window.
    return WindowCut(-1, replace_counters(lived, _NO_LOSSES), over=False)


def _why(error: Exception) -> str:
    return reason(error) if isinstance(error, OSError) else str(error)


def _has_turned(control: ControlFile | None, asked: int) -> bool:
    return control is not None and control.current_segment >= asked
