"""Holds the memory that recorded processes write into, and copies it into the spool.

A process that stores into a mapped file of a disk waits for that disk, and dies of its errors. So it makes its control
file and its segments in memory and passes them on to us (WRITING.md): whatever becomes of the process, we
have what it wrote. We make the files of the spool, with the same bytes, and bring them up to date several times a
second. If we are killed, they are what is left.

Processes append to the process log in memory as well. They open it as a descriptor of ours (SPOOL.md, "Process log"),
and each record has 512 bytes there. In the spool most have an eighth of that: the log would else be full after 50,000
processes. A process that may not open it, as it is of another user or has fewer rights, appends to the file of the
spool itself.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tachograph.format.spool.directory import SpoolDirectory
from tachograph.format.spool.ended_files import ENDED_NAME, member
from tachograph.format.spool.layout import (
    CONTROL_SIZE,
    COPIED_NS_AT,
    CURRENT_SEGMENT_AT,
    SEGMENT_HEADER,
    SEGMENTS_COPIED_AT,
    SEGMENTS_QUIET_AT,
    STOP_REQUESTED_AT,
)
from tachograph.format.spool.process_log import BOUND, LOG_NAME, RECORD_SIZE, shortened
from tachograph.format.spool.segment import end_of_records, used_length
from tachograph.recorder import clock
from tachograph.recorder.collect.file_copies import copy_new, copy_whole, has_data, read_used, write_all, write_changed
from tachograph.recorder.collect.room import SpoolRoom
from tachograph.recorder.collect.running import is_over, was_running_at

_BLOCK = 512

PERIOD_S, LONGEST_PERIOD_S = 0.25, 0.8
"""How often copies are made; a process that sees none for a second looks whether we are still there."""

SOON_S = 0.2
"""How long after a process has begun its files are made. One that has ended before goes into the archive."""

MOST_ARCHIVED = 1 << 20
"""Bytes of a process that go into the archive of those that have ended soon."""

COST = 0.01
"""How much of its time the thread that copies may spend on it, as far as the longest period allows that."""

_ALL = 1 << 32
_U32, _I64 = struct.Struct("<I"), struct.Struct("<q")


@dataclass
class _Segment:
    """A segment that we hold. What lies below ``low_before`` has not changed for two copies."""

    spool: Path
    name: str
    descriptor: int
    size: int
    low: int = 0
    low_before: int = 0
    made: bool = False
    # What was found at ``low_before`` the last time, and is in the file.
    copied: tuple[int, bytes] = (0, b"")

    @property
    def path(self) -> Path:
        """Its file; only those of processes that live for a while need one."""
        return self.spool / self.name


@dataclass
class _Process:
    """The memory files of a process. ``pid`` is its number here, whatever it has in its own namespace.

    ``since_ns`` is when it was met, by our clock: in a time namespace it has another one. ``highest`` is the number of
    the last segment that it passed on. ``lock`` is held while it is copied.
    """

    prefix: str
    pid: int
    spool: Path
    descriptor: int
    size: int
    since_ns: int = field(default_factory=clock.monotonic_ns)
    segments: dict[int, _Segment] = field(default_factory=dict)
    highest: int = 0
    made: bool = False
    replaced: bool = False
    copied: bytes = b""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """Of its control file."""
        return f"{self.prefix}.ctl"

    @property
    def path(self) -> Path:
        """Its control file."""
        return self.spool / self.name

    @property
    def over(self) -> bool:
        """True if it writes no more: it has ended, or is another program now (exec)."""
        return self.replaced or is_over(self.pid, self.since_ns)


class MemoryFiles:
    """The memory files of all processes of a recording, and their log; every method may be called by any thread.

    Passing something on to us never waits for the disk: only those that copy do.
    """

    def __init__(self, spool: Path, log: MemoryLog | None = None, *, archives: bool = False) -> None:
        self._spool = spool
        self._archive = Archive(spool) if archives else None
        self._log = log
        self._log_lock = threading.Lock()
        self._room = SpoolRoom(spool)
        self._lock = threading.Lock()
        self._processes: dict[str, _Process] = {}
        # The latest of each process id; and how many descriptors all have: it is asked at every request.
        self._by_pid: dict[int, _Process] = {}
        self._open_files = 0
        # Segments of processes that have ended, with their numbers, which came after all others had been copied.
        self._late: list[tuple[str, int, _Segment]] = []
        self._done = clock.Flag()
        self._woken = clock.Flag()
        self._thread: threading.Thread | None = None

    @property
    def open_files(self) -> int:
        """The number of descriptors that are held."""
        return self._open_files

    def holds(self, prefix: str, sequence: int) -> bool:
        """True if the file of a segment may still change, or is not whole yet."""
        with self._lock:
            process = self._processes.get(prefix)
            return process is not None and sequence in process.segments

    def lives(self, prefix: str, pid: int, start_ns: int) -> bool:
        """True if a process still writes; ``pid`` is its number in its own namespace, if we do not hold it."""
        with self._lock:
            process = self._processes.get(prefix)
        return was_running_at(pid, start_ns) if process is None else not process.over

    def processes(self) -> list[tuple[int, int]]:
        """The process ids of those that are held, as we see them, and when they were met."""
        with self._lock:
            return [(process.pid, process.since_ns) for process in self._processes.values()]

    def add_process(self, prefix: str, pid: int, control: tuple[int, int], segment: tuple[int, int]) -> None:
        """Hold the control file and segment 0 of a process, each as a descriptor and a size; they are ours from now on.

        Errors:
            ValueError: there is such a process already.
        """
        with self._lock:
            if prefix in self._processes:
                raise ValueError(prefix)
            if earlier := self._by_pid.get(pid):
                earlier.replaced = True
            process = self._by_pid[pid] = _Process(prefix, pid, self._spool, *control)
            self._processes[prefix] = process
            self._open_files += 1
            self._add(process, 0, segment)
            # It hears of us, and knows from then on that it is held.
            _write(control[0], _I64.pack(clock.monotonic_ns()), COPIED_NS_AT)
        if not self._woken.is_set():
            self._woken.set()

    def add_segment(self, prefix: str, sequence: int, segment: tuple[int, int]) -> None:
        """Hold one more segment of a process, as a descriptor and a size; it is ours from now on.

        The process may have ended meanwhile, and its other files be in the spool already.

        Errors:
            ValueError: there is no such process, or it had this segment before.
        """
        with self._lock:
            process = self._processes.get(prefix)
            if process is not None and sequence > process.highest:
                self._add(process, sequence, segment)
                return
            archived = self._archive is not None and self._archive.holds(prefix)
            if process is not None or not (archived or (self._spool / f"{prefix}.ctl").exists()):
                raise ValueError(prefix)
            self._late.append((prefix, sequence, self._segment(prefix, sequence, segment)))
        self._woken.set()

    def _add(self, process: _Process, sequence: int, segment: tuple[int, int]) -> None:
        process.segments[sequence] = self._segment(process.prefix, sequence, segment)
        process.highest = sequence

    def _segment(self, prefix: str, sequence: int, segment: tuple[int, int]) -> _Segment:
        self._open_files += 1
        return _Segment(self._spool, f"{prefix}.{sequence:06}.seg", *segment)

    def log(self, record: bytes) -> bool:
        """Append to the process log in memory for a process that cannot; False if that is not possible."""
        if self._log is None:
            return False
        try:
            self._log.append(record)
        except OSError:
            return False
        return True

    def tell(self, prefix: str, value: int, at: int) -> bool:
        """Write a number into the control file of a process; False if the process is not held."""
        with self._lock:
            process = self._processes.get(prefix)
            if process is not None:
                _write(process.descriptor, _U32.pack(value), at)
            return process is not None

    def start(self) -> None:
        """Begin to make copies; returns at once."""
        self._thread = threading.Thread(target=self._run, name="tachograph copies", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, after the copies that are being made."""
        self._done.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        period = PERIOD_S
        due = time.monotonic() + period
        while not self._done.is_set():
            if self._woken.wait(max(0.0, due - time.monotonic())):
                self._woken.clear()
                self._done.wait(SOON_S)
                self._copy_some(only_new=True)
            else:
                begin = time.thread_time()
                self.copy()
                period = min(max((time.thread_time() - begin) / COST, PERIOD_S), LONGEST_PERIOD_S)
                due = time.monotonic() + period

    def copy(self) -> None:
        """Bring the files of all processes up to date. What there is no room for is tried again the next time."""
        self._copy_some(only_new=False)

    def _copy_log(self) -> None:
        if self._log is not None:
            with self._log_lock, suppress(OSError):
                self._log.copy()

    def _copy_late(self) -> None:
        """Copy what came late, if its process has begun it; what there is no room for stays."""
        with self._lock:
            late, self._late = self._late, []
        for prefix, sequence, segment in late:
            try:
                control = SpoolDirectory(self._spool).control(prefix)
                if control is not None and sequence <= control.current_segment:
                    copy_whole(segment.path, segment.descriptor, segment.size, made=False)
            except FileNotFoundError:
                pass  # the spool has been taken away
            except OSError:
                with self._lock:
                    self._late.append((prefix, sequence, segment))
                continue
            self._close(segment.descriptor)

    def _copy_some(self, *, only_new: bool) -> None:
        self._copy_log()
        self._copy_late()
        with self._lock:
            processes = [each for each in self._processes.values() if not (only_new and each.made)]
        with self._archive_open():
            for process in processes:
                # Of thousands, most are over before they are looked at for the first time.
                over = process.replaced or (not process.made and process.over)
                self._copy(process, last=over)

    def settle(self, prefix: str) -> bool:
        """Copy the memory of an ended process for the last time, and let it go; True if there was room for it."""
        with self._lock:
            process = self._processes.get(prefix)
        return process is None or self._copy(process, last=True)

    def settle_over(self) -> None:
        """Settle all processes that have ended, at once: their descriptors are needed."""
        self._copy_log()
        self._copy_late()
        with self._lock:
            processes = list(self._processes.values())
        with self._archive_open():
            for process in processes:
                if process.over:
                    self._copy(process, last=True)

    def settle_all(self) -> list[str]:
        """Settle all processes, as the recording ends; the prefixes of those for which there was no room."""
        self._copy_log()
        self._copy_late()
        with self._lock:
            prefixes, late = list(self._processes), [prefix for prefix, _, _ in self._late]
        with self._archive_open():
            return late + [prefix for prefix in prefixes if not self.settle(prefix)]

    @contextmanager
    def _archive_open(self) -> Iterator[None]:
        """Let the archive stay open from one process to the next."""
        try:
            yield
        finally:
            if self._archive is not None:
                self._archive.close()

    def _copy(self, process: _Process, *, last: bool) -> bool:
        """Make the files like the memory; True if that was possible. With ``last`` the memory is let go then."""
        with process.lock:
            if self._processes.get(process.prefix) is not process:
                return True
            try:
                whole = self._copy_files(process, last=last)
                gone = False
            except FileNotFoundError:
                # The spool has been taken away: nothing is recorded any more.
                _write(process.descriptor, _U32.pack(1), STOP_REQUESTED_AT)
                whole = gone = True
            except OSError:
                return False
            if gone or (last and whole):
                self._let_go(process)
            return whole

    def _let_go(self, process: _Process) -> None:
        with self._lock:
            del self._processes[process.prefix]
            if self._by_pid.get(process.pid) is process:
                del self._by_pid[process.pid]
            descriptors = [process.descriptor, *(segment.descriptor for segment in process.segments.values())]
            process.segments.clear()
        for descriptor in descriptors:
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        os.close(descriptor)
        with self._lock:
            self._open_files -= 1

    def _copy_files(self, process: _Process, *, last: bool) -> bool:
        """The control file is read first, and written last: what it says of segments is true of those in the spool.

        Pending blocks are read after the segments: one that gets its row in between is in neither, and never in both.

        Errors:
            FileNotFoundError: the control file was made before, and has been taken away.
            OSError: there is no room for it, for example.
        """
        if last and self._put_into_archive(process):
            return True
        begin_ns = clock.monotonic_ns()
        head = bytearray(os.pread(process.descriptor, CONTROL_SIZE, 0))
        (quiet,) = _U32.unpack_from(head, SEGMENTS_QUIET_AT)
        whole = self._copy_segments(process, _ALL if last else quiet)
        with self._lock:
            copied = min([process.highest + 1 if last else min(quiet, process.highest), *process.segments])
        _U32.pack_into(head, SEGMENTS_COPIED_AT, copied)
        _I64.pack_into(head, COPIED_NS_AT, 0)
        pending = b""
        if has_data(process.descriptor, CONTROL_SIZE):
            pending = os.pread(process.descriptor, process.size - CONTROL_SIZE, CONTROL_SIZE)
        now = bytes(head) + pending
        if not last:
            _write(process.descriptor, _I64.pack(clock.monotonic_ns()), COPIED_NS_AT)
            _write(process.descriptor, _U32.pack(copied), SEGMENTS_COPIED_AT)
            if now == process.copied:
                return whole
        if not (last and whole):
            _I64.pack_into(head, COPIED_NS_AT, begin_ns)
            _U32.pack_into(head, CURRENT_SEGMENT_AT, self._current(process, head))
        write_changed(process.path, bytes(head) + pending, process.size, made=process.made, sparse=last)
        process.made = True
        process.copied = now if whole else b""
        return whole

    def _put_into_archive(self, process: _Process) -> bool:
        """Archive a process that has ended before a file was made for it, if it has written little; True if so.

        Errors:
            FileNotFoundError: the spool has been taken away.
            OSError: there is no room for it, for example.
        """
        with self._lock:
            segments = dict(process.segments)
        if self._archive is None or process.made or any(segment.made for segment in segments.values()):
            return False
        head = bytearray(read_used(process.descriptor, process.size).ljust(CONTROL_SIZE, b"\0"))
        (current,) = _U32.unpack_from(head, CURRENT_SEGMENT_AT)
        if not segments.keys() >= set(range(min(current, len(segments)) + 1)):
            return False  # one is on its way to us
        if os.path.exists(f"{process.spool}/{process.name}"):
            return False  # the process has made files itself while it was alone
        _U32.pack_into(head, SEGMENTS_COPIED_AT, process.highest + 1)
        _I64.pack_into(head, COPIED_NS_AT, 0)
        files = {process.name: bytes(head[: max(used_length(bytes(head)), CONTROL_SIZE)])}
        for sequence, segment in sorted(segments.items()):
            size = min(segment.size, MOST_ARCHIVED)
            data = read_used(segment.descriptor, size)
            end = end_of_records(data, size)
            if sequence <= current:
                files[segment.name] = data[:end].ljust(end, b"\0")
            elif end > SEGMENT_HEADER:
                return False  # killed as it went on to this one
        if sum(map(len, files.values())) >= MOST_ARCHIVED:
            return False
        self._archive.add(process.prefix, files)
        return True

    def _current(self, process: _Process, head: bytearray) -> int:
        """The current segment, as far as it is in the spool: one that was just passed on may be on its way to us."""
        (current,) = _U32.unpack_from(head, CURRENT_SEGMENT_AT)
        segment = min(int(current), process.highest)
        while segment < current and (self._spool / f"{process.prefix}.{segment + 1:06}.seg").exists():
            segment += 1
        return segment

    def _copy_segments(self, process: _Process, quiet: int) -> bool:
        """Copy all segments, and let those below ``quiet`` go; True if there was room for all."""
        with self._lock:
            segments = dict(process.segments)
        room = True
        for sequence, segment in segments.items():
            try:
                if not segment.made and not segment.path.exists():
                    self._room.check(segment.size, sequence)
                if sequence < quiet:
                    copy_whole(segment.path, segment.descriptor, segment.size, made=segment.made)
                else:
                    self._copy_new(segment)
            except FileNotFoundError:
                pass  # it was made into a part, or the spool has been taken away
            except OSError:
                room = False
                continue
            else:
                segment.made = True
                if sequence >= quiet:
                    continue
            with self._lock:
                done = process.segments.pop(sequence)
            self._close(done.descriptor)
        return room

    def _copy_new(self, segment: _Segment) -> None:
        low = segment.low_before
        segment.copied, reached = copy_new(
            segment.path, segment.descriptor, segment.size, low, segment.copied, made=segment.made
        )
        segment.low, segment.low_before = max(segment.low, reached), segment.low


class Archive:
    """Appends to the archive of a spool; whole members or nothing."""

    def __init__(self, spool: Path) -> None:
        self._path = spool / ENDED_NAME
        self._lock = threading.Lock()
        self._prefixes: set[str] = set()
        self._descriptor: int | None = None

    def holds(self, prefix: str) -> bool:
        """True if the files of a process are in it."""
        return prefix in self._prefixes

    def add(self, prefix: str, files: Mapping[str, bytes]) -> None:
        """Append the files of a process; the archive is open then until ``close``.

        Errors:
            FileNotFoundError: the spool has been taken away.
            OSError: there is no room, for example.
        """
        data = b"".join([member(name, content) for name, content in files.items()])
        with self._lock:
            if self._descriptor is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                self._descriptor = os.open(self._path, flags, 0o600)
            end = os.lseek(self._descriptor, 0, os.SEEK_END)
            try:
                write_all(self._descriptor, data, end)
            except OSError:
                os.ftruncate(self._descriptor, end)
                raise
            self._prefixes.add(prefix)

    def close(self) -> None:
        """Close the archive; the next process opens it again, if it is still there."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None


def _write(descriptor: int, data: bytes, at: int) -> None:
    """Tell a process something. One that does not want to hear it has sealed its file."""
    with suppress(OSError):
        os.pwrite(descriptor, data, at)


CHUNK = 1 << 16

FREED_AT_ONCE = 1 << 18
"""Bytes that were copied are freed when there are so many of them; of whole pages."""

_KIND_AT = 8


class MemoryLog:
    """Copies the log at ``descriptor`` into the spool; called by one thread at a time."""

    def __init__(self, spool: Path, descriptor: int) -> None:
        self._path = spool / LOG_NAME
        self._descriptor = descriptor
        self._copied = self._freed = 0
        # What is to be written of the records up to ``_copied``, and was not.
        self._left = b""

    def append(self, record: bytes) -> None:
        """Append a record for a process that cannot; any thread may.

        Errors:
            OSError: the log waits for the disk and is full, for example.
        """
        if os.fstat(self._descriptor).st_blocks * _BLOCK >= BOUND:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(descriptor, record)
        finally:
            os.close(descriptor)

    def copy(self) -> None:
        """Append to the log in the spool what is new in memory.

        Errors:
            OSError: there is no room, for example. What was not copied is there the next time.
        """
        size = os.fstat(self._descriptor).st_size // RECORD_SIZE * RECORD_SIZE
        if size == self._copied and not self._left:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o600)
        try:
            self._write_left(file)
            while self._copied < size:
                data = os.pread(self._descriptor, min(CHUNK, size - self._copied), self._copied)
                self._copied += len(data)
                self._left = _as_written(data, full=os.fstat(file).st_size >= BOUND)
                self._write_left(file)
        finally:
            os.close(file)
        self._free()

    def _write_left(self, file: int) -> None:
        while self._left:
            self._left = self._left[os.write(file, self._left) :]

    def _free(self) -> None:
        end = self._copied // FREED_AT_ONCE * FREED_AT_ONCE
        if end > self._freed:
            with mmap.mmap(self._descriptor, end - self._freed, offset=self._freed) as memory:
                memory.madvise(mmap.MADV_REMOVE)
            self._freed = end


def _as_written(data: bytes, *, full: bool) -> bytes:
    """Whole records of the memory as they are in the spool: one byte of each, once the log there is full."""
    if full:
        return data[_KIND_AT::RECORD_SIZE]
    return b"".join([shortened(data[at : at + RECORD_SIZE]) for at in range(0, len(data), RECORD_SIZE)])
