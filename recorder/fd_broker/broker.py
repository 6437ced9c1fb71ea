"""Takes the memory files of processes of the recording, and makes files of the spool for those that may not.

A process makes its control file and segments in memory and passes them on here: we hold them (WRITING.md).

A server often begins as root and becomes another user, or calls chroot. Its recording is root's alone (mode 0700), so
it cannot make its next segment. It asks here, through a socket (WRITING.md), and
is given a descriptor of a file that we made: of its own, and of no other. Nothing in the spool is given to another
user, and that user chooses none of the names in it.
"""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import resource
import select
import socket
import stat
import struct
import threading
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tachograph.format import FormatError, SpoolDirectory
from tachograph.format.spool.directory import process_of
from tachograph.format.spool.layout import (
    ANSWER_FIELDS,
    ANSWER_MAGIC,
    CONTROL_FIELDS,
    CONTROL_SIZE,
    PENDING_SIZE,
    PROCESS_MAGIC,
    REQUEST_FIELDS,
    REQUEST_MAGIC,
    SEGMENT_FIELDS,
    SEGMENT_HEADER,
    SEGMENT_MAGIC,
    Request,
)
from tachograph.format.spool.process_log import BOUND, LOG_NAME, RECORD_SIZE, Event
from tachograph.recorder import clock
from tachograph.recorder.collect.memory_files import MemoryFiles
from tachograph.recorder.collect.running import ancestors, was_running_at

PATIENCE_S = 1.0
"""How long a connected process may take to send its request."""

MOST_AHEAD = 3
"""How many segments beyond the current one there may be: the next, its next, and one to be told of only now."""

SPARE_FILES = 100
"""Descriptors that are left for what else this process opens later; what finds none waits in the socket."""

POLL_S = 0.1
"""How often is looked whether there are descriptors again."""

TOGETHER_S = 0.005
"""How long processes that need no answer are left to come together: waking up is most of what one takes."""

CATCHING_UP_S = 2.0
"""How long is waited at most for what processes have sent already."""

_HELD = {Request.HELD_PROCESS: 2, Request.HELD_SEGMENT: 1}
_F_GET_SEALS, _F_SEAL_SHRINK = 1034, 2
_LOG_HEAD = struct.Struct("<8sIii")
_CREDENTIALS = struct.Struct("<iII")
# As numbers: the enumeration takes longer to join and to ask than a call of the kernel.
_CLOSE_ON_EXEC, _AT_ONCE, _CUT = map(int, (socket.MSG_CMSG_CLOEXEC, socket.MSG_DONTWAIT, socket.MSG_CTRUNC))
_INT = struct.Struct("<i")


class RefusedError(Exception):
    """The asking process has no right to the file."""


@dataclass(frozen=True)
class _Asked:
    """A request, with the process id that the kernel has told."""

    pid: int
    what: int
    sequence: int
    start_ns: int
    control_size: int
    segment_size: int
    record: bytes
    files: Sequence[int] = ()

    @property
    def prefix(self) -> str:
        """Of the files of this process."""
        return f"{self.pid}-{self.start_ns}"


class FdBroker:
    """The thread that answers.

    ``program`` is the first process of the recording, which lives. ``listener`` is the socket whose name it knows.
    ``held`` takes the memory files.
    """

    def __init__(
        self,
        spool: Path,
        program: int,
        listener: _socket.socket,
        segment_size: int,
        *,
        memory: bool,
        held: MemoryFiles | None = None,
    ) -> None:
        self._held = MemoryFiles(spool) if held is None else held
        self._serving = threading.Lock()
        self._refused = 0
        self._spool = SpoolDirectory(spool)
        self._program, self._since = program, clock.monotonic_ns()
        self._listener = socket.socket(fileno=listener.detach())
        self._segment_size = segment_size
        self._control_size = CONTROL_SIZE + (PENDING_SIZE if memory else 0)
        self._others = _open_files() - self._held.open_files
        self._thread = threading.Thread(target=self._run, name="tachograph fd broker", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    @property
    def refused(self) -> int:
        """The number of memory files that were not taken, though their processes may assume that they are held."""
        return self._refused

    def catch_up(self) -> bool:
        """Wait until all requests sent before are answered; False if that took too long."""
        deadline = time.monotonic() + CATCHING_UP_S
        waiting = select.poll()
        waiting.register(self._listener, select.POLLIN)
        while time.monotonic() < deadline:
            with self._serving:
                if not waiting.poll(0):
                    return True
            clock.rest(0.0005)
        return False

    def stop(self) -> None:
        """End; requests that were not answered yet are not answered any more."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        waiting = select.poll()
        waiting.register(self._listener, select.POLLIN)
        while True:
            if not waiting.poll(0):
                clock.rest(TOGETHER_S)
                waiting.poll()
            if self._is_full():
                self._held.settle_over()
                if self._is_full():
                    clock.rest(POLL_S)
                    continue
            try:
                with self._serving:
                    self._accept()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    return  # it is the end
                self._held.settle_over()
                clock.rest(PATIENCE_S)

    def _is_full(self) -> bool:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        for_us = limit - self._others
        return self._held.open_files + min(SPARE_FILES, for_us // 2) > for_us

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        # Who is refused sees the end of the connection; a disk that fails is told.
        with connection, suppress(OSError, RefusedError, FormatError):
            self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        pid, user, _ = _CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        # A process of our own user could write into the spool itself, and may be over by now: what it sends for us to
        # hold, or for the log, is taken without asking where it comes from.
        ours = user == os.geteuid()
        if not ours:
            connection.settimeout(PATIENCE_S)
        if not (ours or self._belongs(pid)):
            # It may have ended while we were stopped: what it sent us to hold is lost.
            late = _receive(connection, pid)
            self._refused += late.what in _HELD
            for descriptor in late.files:
                os.close(descriptor)
            raise RefusedError
        request = _receive(connection, pid)
        if request.what in _HELD:
            self._hold(request, trusted=ours)
            if not ours and request.what == Request.HELD_PROCESS:
                connection.sendmsg([_answer(0, 0)])
            return
        connection.settimeout(PATIENCE_S)
        if ours and request.what != Request.LOG and not self._belongs(pid):
            raise RefusedError
        paths: list[Path] = []
        try:
            paths = self._make(request)
        except OSError as error:
            connection.sendmsg([_answer(error.errno or errno.EIO, 0)])
            return
        self._give(connection, paths)

    def _hold(self, asked: _Asked, *, trusted: bool) -> None:
        """Take memory files, which say themselves of what process they are. Raises RefusedError, with them closed."""
        taken = False
        try:
            files = list(zip(asked.files, self._sizes(asked), strict=True))
            if not all(_is_memory(*file) for file in files):
                raise RefusedError
            prefix = self._prefix_of(asked, trusted=trusted)
            if asked.what == Request.HELD_PROCESS:
                self._held.add_process(prefix, asked.pid, files[0], files[1])
            else:
                self._held.add_segment(prefix, asked.sequence, files[0])
            taken = True
        except (OSError, FormatError, ValueError, struct.error) as error:
            raise RefusedError from error
        finally:
            if not taken:
                self._refused += 1
                for descriptor in asked.files:
                    os.close(descriptor)

    def _sizes(self, asked: _Asked) -> list[int]:
        """The sizes that its memory files must have."""
        if not SEGMENT_HEADER < asked.segment_size <= self._segment_size:
            raise RefusedError
        return [asked.segment_size] if asked.what == Request.HELD_SEGMENT else [self._control_size, asked.segment_size]

    def _prefix_of(self, asked: _Asked, *, trusted: bool) -> str:
        """The prefix that is in the files' headers: where a process has ids of its own, it is not by the kernel's."""
        if asked.what == Request.HELD_PROCESS:
            pid, start_ns = process_of(os.pread(asked.files[0], CONTROL_FIELDS.size, 0))
        else:
            magic, sequence, _, pid, start_ns, _ = SEGMENT_FIELDS.unpack(os.pread(asked.files[0], SEGMENT_HEADER, 0))
            if magic != SEGMENT_MAGIC or sequence != asked.sequence or not 0 < sequence < 10**9:
                raise RefusedError
        if not (0 < pid < 10**9 and 0 <= start_ns == asked.start_ns < 10**18):
            raise RefusedError
        if not trusted and not (pid == asked.pid and _is_known(asked)):
            raise RefusedError
        return f"{pid}-{start_ns}"

    def _give(self, connection: socket.socket, paths: Sequence[Path]) -> None:
        """Pass the files on. If that fails, or the other side ends before it has them in use, they are removed."""
        used = not paths
        descriptors: list[int] = []
        try:
            descriptors.extend(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC) for path in paths)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))] if descriptors else []
            connection.sendmsg([_answer(0, len(descriptors))], rights)
            try:
                used = used or connection.recv(1) != b""
            except TimeoutError:
                used = True  # it may still come to it
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
            if not used:
                for path in paths:
                    path.unlink(missing_ok=True)

    def _make(self, asked: _Asked) -> list[Path]:
        """Makes the file that the request is for. Raises RefusedError, or OSError if there is no room."""
        if asked.what == Request.LOG:
            self._append(asked)
            return []
        if not _is_known(asked):
            raise RefusedError
        if asked.what == Request.SEGMENT:
            return [self._segment(asked)]
        if asked.what == Request.PROCESS:
            return self._process(asked)
        raise RefusedError

    def _segment(self, asked: _Asked) -> Path:
        control = self._spool.control(asked.prefix)
        if control is None or not control.recording or asked.segment_size != self._segment_size:
            raise RefusedError
        if not control.current_segment < asked.sequence <= control.current_segment + MOST_AHEAD:
            raise RefusedError
        path = self._path(asked.prefix, f"{asked.sequence:06}.seg")
        try:
            _make_file(path, asked.segment_size)
        except FileExistsError:
            # Made before, for an answer that came too late.
            if not _is_unused(path, asked.segment_size):
                raise RefusedError from None
        return path

    def _process(self, asked: _Asked) -> list[Path]:
        if asked.control_size != self._control_size or not 0 < asked.segment_size <= self._segment_size:
            raise RefusedError
        made: list[Path] = []
        try:
            for end, size in (
                ("ctl", asked.control_size),
                ("000000.seg", asked.segment_size),
            ):
                path = self._path(asked.prefix, end)
                _make_file(path, size)
                made.append(path)
        except OSError:
            for path in made:
                path.unlink(missing_ok=True)
            raise
        return made

    def _append(self, asked: _Asked) -> None:
        magic, kind, pid, parent_pid = _LOG_HEAD.unpack_from(asked.record)
        writer = parent_pid if kind == Event.REAPED else pid  # that one tells of the end of a child
        if magic != PROCESS_MAGIC or writer != asked.pid or not 0 < kind < 256:
            raise RefusedError
        if self._held.log(asked.record):
            return
        descriptor = os.open(
            self._spool.path / LOG_NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            full = os.fstat(descriptor).st_size >= BOUND
            os.write(descriptor, bytes([kind]) if full else asked.record)
        finally:
            os.close(descriptor)

    def _path(self, prefix: str, end: str) -> Path:
        return self._spool.path / f"{prefix}.{end}"

    def _belongs(self, pid: int) -> bool:
        """True if a process is of this recording: it comes from the first process, or from a recorded one.

        A child of ours need not belong to the recording: if we are a container's first process, all orphans are ours.
        """
        family = ancestors(pid)
        if self._program in family and was_running_at(self._program, self._since):
            return True
        if any(recorded in family and was_running_at(recorded, since) for recorded, since in self._held.processes()):
            return True
        for name in os.listdir(self._spool.path):
            prefix, _, end = name.partition(".")
            if end == "ctl":
                recorded, _, start_ns = prefix.partition("-")
                if int(recorded) in family and was_running_at(int(recorded), int(start_ns)):
                    return True
        return False


def _is_known(asked: _Asked) -> bool:
    """True if the process that sent the request was running at the start time that it names."""
    return asked.start_ns <= clock.monotonic_ns() and was_running_at(asked.pid, asked.start_ns)


def _is_memory(descriptor: int, size: int) -> bool:
    """True if the file is in memory and its size is sealed; files of disks, which may block, cannot be sealed."""
    sealed = fcntl.fcntl(descriptor, _F_GET_SEALS) & _F_SEAL_SHRINK
    return bool(sealed) and os.fstat(descriptor).st_size == size


def _open_files() -> int:
    """The number of descriptors of this process; 0 if unknown."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def _receive(connection: socket.socket, pid: int) -> _Asked:
    """Receives a request, which the connected process itself must have sent: its pid is then not another's."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    size = REQUEST_FIELDS.size + RECORD_SIZE
    room = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(2 * _INT.size)
    try:
        # Most have sent it before they are accepted.
        data, ancillary, flags, _ = connection.recvmsg(size, room, _CLOSE_ON_EXEC | _AT_ONCE)
    except BlockingIOError:
        connection.settimeout(PATIENCE_S)
        data, ancillary, flags, _ = connection.recvmsg(size, room, _CLOSE_ON_EXEC)
    senders: list[int] = []
    files: list[int] = []
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(body) >= _CREDENTIALS.size:
            senders.append(_CREDENTIALS.unpack(body[: _CREDENTIALS.size])[0])
        elif level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files += [each[0] for each in _INT.iter_unpack(body[: len(body) // _INT.size * _INT.size])]
    try:
        if senders != [pid] or flags & _CUT or len(data) not in (REQUEST_FIELDS.size, size):
            raise RefusedError
        magic, what, sequence, start_ns, control_size, segment_size = REQUEST_FIELDS.unpack_from(data)
        record = data[REQUEST_FIELDS.size :]
        if magic != REQUEST_MAGIC or (what == Request.LOG) != bool(record) or len(files) != _HELD.get(what, 0):
            raise RefusedError
    except RefusedError:
        for descriptor in files:
            os.close(descriptor)
        raise
    return _Asked(pid, what, sequence, start_ns, control_size, segment_size, record, files)


def _answer(error: int, files: int) -> bytes:
    return ANSWER_FIELDS.pack(ANSWER_MAGIC, error, files)


def _make_file(path: Path, size: int) -> None:
    """A new file of ``size`` zero bytes, with its blocks on the disk; OSError if there is no room."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError:
        path.unlink()
        raise
    finally:
        os.close(descriptor)


def _is_unused(path: Path, size: int) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        whole = stat.S_ISREG(status.st_mode) and status.st_size == size
        return whole and os.pread(descriptor, SEGMENT_HEADER, 0) == bytes(SEGMENT_HEADER)
    finally:
        os.close(descriptor)
