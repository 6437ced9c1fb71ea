"""Makes files of the spool for processes of the recording that may not.

A server often begins as root and becomes another user, or calls chroot. Its recording is root's alone (mode 0700), so
it cannot make its next segment. It asks here, through a socket (SPEC.md, "Files that the recording command makes"), and
is given a descriptor of a file that we made: of its own, and of no other. Nothing in the spool is given to another
user, and that user chooses none of the names in it.
"""

from __future__ import annotations

import _socket
import errno
import os
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
from tachograph.format.spool.layout import (
    ANSWER_FIELDS,
    ANSWER_MAGIC,
    CONTROL_SIZE,
    PENDING_SIZE,
    PROCESS_MAGIC,
    REQUEST_FIELDS,
    REQUEST_MAGIC,
    SEGMENT_HEADER,
    Request,
)
from tachograph.format.spool.process_log import BOUND, LOG_NAME, RECORD_SIZE
from tachograph.recorder.collect.running import ancestors, was_running_at

PATIENCE_S = 1.0
"""How long a connected process may take to send its request."""

MOST_AHEAD = 3
"""How many segments beyond the current one there may be: the next, its next, and one to be told of only now."""

_LOG_HEAD = struct.Struct("<8sIi")
_CREDENTIALS = struct.Struct("<iII")


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

    @property
    def prefix(self) -> str:
        """Of the files of this process."""
        return f"{self.pid}-{self.start_ns}"


class FdBroker:
    """The thread that answers.

    ``program`` is the first process of the recording, which lives. ``listener`` is the socket whose name it knows.
    """

    def __init__(self, spool: Path, program: int, listener: _socket.socket, segment_size: int, *, memory: bool) -> None:
        self._spool = SpoolDirectory(spool)
        self._program, self._since = program, time.monotonic_ns()
        self._listener = socket.socket(fileno=listener.detach())
        self._segment_size = segment_size
        self._control_size = CONTROL_SIZE + (PENDING_SIZE if memory else 0)
        self._thread = threading.Thread(target=self._run, name="tachograph fd broker", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the request that is being answered; later ones are not answered."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    return  # it is the end
                time.sleep(PATIENCE_S)
                continue
            # Who is refused sees the end of the connection; a disk that fails is told.
            with connection, suppress(OSError, RefusedError, FormatError):
                self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_S)
        pid, _, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if not self._belongs(pid):
            raise RefusedError
        asked = _receive(connection, pid)
        paths: list[Path] = []
        try:
            paths = self._make(asked)
        except OSError as error:
            connection.sendmsg([_answer(error.errno or errno.EIO, 0)])
            return
        self._give(connection, paths)

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
        """What is to be passed on. Raises RefusedError, or OSError if there is no room."""
        if asked.what == Request.LOG:
            self._append(asked)
            return []
        known = asked.start_ns <= time.monotonic_ns() and was_running_at(asked.pid, asked.start_ns)
        if not known:
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
        magic, kind, pid = _LOG_HEAD.unpack_from(asked.record)
        if magic != PROCESS_MAGIC or pid != asked.pid or not 0 < kind < 256:
            raise RefusedError
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
        """Whether a process is of this recording: it comes from the first process, or from a recorded one.

        A child of ours need not belong to the recording: if we are a container's first process, all orphans are ours.
        """
        family = ancestors(pid)
        if self._program in family and was_running_at(self._program, self._since):
            return True
        for name in os.listdir(self._spool.path):
            prefix, _, end = name.partition(".")
            if end == "ctl":
                recorded, _, start_ns = prefix.partition("-")
                if int(recorded) in family and was_running_at(int(recorded), int(start_ns)):
                    return True
        return False


def _receive(connection: socket.socket, pid: int) -> _Asked:
    """What is asked by the process that connected, and that must itself have sent it: its number is then no other's."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    size = REQUEST_FIELDS.size + RECORD_SIZE
    data, told, _, _ = connection.recvmsg(size, socket.CMSG_SPACE(_CREDENTIALS.size))
    senders = [
        _CREDENTIALS.unpack(body[: _CREDENTIALS.size])[0]
        for level, kind, body in told
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(body) >= _CREDENTIALS.size
    ]
    if senders != [pid] or len(data) not in (REQUEST_FIELDS.size, size):
        raise RefusedError
    magic, what, sequence, start_ns, control_size, segment_size = REQUEST_FIELDS.unpack_from(data)
    record = data[REQUEST_FIELDS.size :]
    if magic != REQUEST_MAGIC or (what == Request.LOG) != bool(record):
        raise RefusedError
    return _Asked(pid, what, sequence, start_ns, control_size, segment_size, record)


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
