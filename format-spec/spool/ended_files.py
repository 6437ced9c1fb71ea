"""The archive of a spool: the files of processes that had ended before any file was made for them.

A program may fork thousands of children that live for some milliseconds. Making two files of its own for each, reading
and removing them takes longer than the child has run.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

ENDED_NAME = "ended.tar"
"""Name of the archive in a spool."""

WINDOW = 1 << 20
"""Bytes that are read at once: neighbours are asked for one after the other, and opening a file takes longer."""

_BLOCK = 512
_MEMBER_NAME = re.compile(rb"\d{1,9}-\d{1,18}\.(?:ctl|\d{6,10}\.seg)")
_CHECK = slice(148, 156)


def member(name: str, data: bytes) -> bytes:
    """A file as a member of the archive: a header as POSIX's ustar has it, the bytes, and zeros up to a block."""
    head = bytearray(_BLOCK)
    head[: len(name)] = name.encode("ascii")
    head[100:124] = b"0000600\x000000000\x000000000\x00"
    head[124:148] = b"%011o\x0000000000000\x00" % len(data)
    head[156:157] = b"0"
    head[257:265] = b"ustar\x0000"
    head[_CHECK] = b"%06o\x00 " % _sum(head)
    return bytes(head) + data + bytes(-len(data) % _BLOCK)


def _sum(head: bytes | bytearray) -> int:
    # Most of a header is zeros, which take as long to add up as other bytes.
    return sum(head.translate(None, b"\0")) - sum(head[_CHECK]) + 8 * ord(" ")


class EndedFiles:
    """The members of an archive, by name. It may grow: each look takes up what has come since the one before.

    What is no whole member, and what follows it, is not there: the recording command was killed while it wrote.
    """

    def __init__(self, spool: Path) -> None:
        self._path = spool / ENDED_NAME
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._window: tuple[int, bytes] = (0, b"")

    def names(self) -> list[str]:
        """The names of its members, those that came last included."""
        self._look()
        return list(self._places)

    def holds(self, name: str) -> bool:
        """True if there is a member of that name among those that were taken up."""
        return name in self._places

    def read(self, name: str, limit: int) -> bytes | None:
        """The bytes of a member, at most ``limit``; None if there is none."""
        if name not in self._places:
            self._look()
        place = self._places.get(name)
        if place is None or place[1] > limit:
            return None
        at, data = self._window
        if not (at <= place[0] and place[0] + place[1] <= at + len(data)):
            with self._open() as file:
                file.seek(place[0])
                at, data = self._window = place[0], file.read(max(WINDOW, place[1]))
        return data[place[0] - at : place[0] - at + place[1]]

    def _look(self) -> None:
        with suppress(OSError):
            if self._path.lstat().st_size >= self._end + _BLOCK:
                self._take_up()

    def _take_up(self) -> None:
        with self._open() as file:
            size = os.fstat(file.fileno()).st_size
            at, data = 0, b""
            while self._end + _BLOCK <= size:
                if not at <= self._end <= at + len(data) - _BLOCK:
                    file.seek(self._end)
                    at, data = self._end, file.read(WINDOW)
                place = _place(data[self._end - at : self._end - at + _BLOCK])
                if place is None:
                    break
                name, length = place
                begin = self._end + _BLOCK
                if begin + length > size:
                    break
                self._places.setdefault(name, (begin, length))
                self._end = begin + (length + _BLOCK - 1) // _BLOCK * _BLOCK

    def _open(self) -> io.FileIO:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        file = io.FileIO(os.open(self._path, flags))
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise OSError(errno.EINVAL, f"{ENDED_NAME} is not a regular file")
        return file


def _place(head: bytes) -> tuple[str, int] | None:
    """The name and the length of a member, as its header has them; None if it is not one of ours."""
    name = head[:100].rstrip(b"\0")
    try:
        length, check = int(head[124:135], 8), int(head[148:154], 8)
    except ValueError:
        return None
    if length < 0 or check != _sum(head) or not _MEMBER_NAME.fullmatch(name):
        return None
    return name.decode("ascii"), length
