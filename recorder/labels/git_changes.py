"""Whether tracked files differ from the commit that is checked out, as ``git describe --dirty`` says, without git.

The index (gitformat-index) has, for each file, what git saw when it looked last: its hash, and its size and time of
change. The files are dirty if the tree that the index makes is not the commit's, or a file is not as git saw it. A file
whose time alone has changed is hashed. What cannot be told, or not in time, is unknown (None).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tachograph.format.atomic import read_regular_file
from tachograph.format.errors import FormatError
from tachograph.recorder.labels.git_repository import Repository, read_tree

MAX_INDEX = 8 << 20
"""Bytes of an index that is read: about 80,000 files."""

MAX_HASHED = 4 << 20
"""Bytes of a file that is hashed."""

LOOKS = 64
"""Files between two looks at the clock."""

_HEADER, _ENTRY = struct.Struct(">4sII"), struct.Struct(">10I20sH")
_FOLDER, _LINK, _MODULE, _FILE = 0o040000, 0o120000, 0o160000, 0o100000
_SKIPPED, _INTENDED, _EXTENDED, _ASSUMED = 1 << 14, 1 << 13, 1 << 14, 1 << 15
# Files whose bytes on the disk are not those that git has stored.
_CONVERTS = re.compile(rb"filter|ident|working-tree-encoding|crlf|eol", re.IGNORECASE)


class Tracked(NamedTuple):
    """A file of the index. ``looked`` is false of one that git was told not to look at."""

    path: bytes
    mode: int
    digest: bytes
    mtime: tuple[int, int]
    size: int
    looked: bool
    settled: bool
    """False of one that is in the middle of a merge, or is to be added later."""


class _TooLateError(Exception):
    """There was no time to tell."""


def is_dirty(repository: Repository, commit: str, seconds: float) -> bool | None:
    """Whether tracked files differ from ``commit``; None if that cannot be told within ``seconds``."""
    until = time.monotonic() + seconds
    try:
        config = _text(repository.common / "config")
        if len(commit) != 40 or b"objectformat" in config.lower():
            return None
        path = repository.folder / "index"
        written = path.stat().st_mtime_ns
        files = list(read_index(read_regular_file(path, MAX_INDEX), until))
        if not all(file.settled for file in files):
            return True
        tree = read_tree(repository, commit)
        if tree is not None and tree != tree_of(files, until).hex():
            return True
        changed = _changed(repository, files, written, config, until)
    except (OSError, ValueError, struct.error, FormatError, _TooLateError):
        return None
    return changed if changed or tree is not None else None


def read_index(data: bytes, until: float) -> Iterator[Tracked]:
    """The files of an index of version 2, 3 or 4, in its order. Raises ValueError for one that is of another kind."""
    if data[-20:] not in (hashlib.sha1(data[:-20], usedforsecurity=False).digest(), bytes(20)):
        raise ValueError("damaged, or being written")
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index of a known version")
    at, path = _HEADER.size, b""
    for number in range(count):
        if number % LOOKS == 0:
            _look(until)
        _, _, seconds, nanoseconds, _, _, mode, _, _, size, digest, flags = _ENTRY.unpack_from(data, at)
        start, more = at + _ENTRY.size, 0
        if flags & _EXTENDED:
            (more,) = struct.unpack_from(">H", data, start)
            start += 2
        if version == 4:
            removed, start = _variable(data, start)
            end = data.index(0, start)
            path = path[: len(path) - removed] + data[start:end]
            at = end + 1
        else:
            end = data.index(0, start)
            path = data[start:end]
            at += (end - at + 8) & ~7
        if mode == _FOLDER:
            raise ValueError("a sparse index")
        settled = not flags & 0x3000 and not more & _INTENDED
        looked = not flags & _ASSUMED and not more & _SKIPPED and mode != _MODULE
        yield Tracked(path, mode, digest, (seconds, nanoseconds), size, looked, settled)
    if b"link" in _extensions(data, at):
        raise ValueError("a split index")


def _extensions(data: bytes, at: int) -> Iterator[bytes]:
    while at + 8 <= len(data) - 20:
        name, length = struct.unpack_from(">4sI", data, at)
        yield name
        at += 8 + length


def _variable(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as offsets in packs have them, and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1 << 7) + (byte & 0x7F)
    return value, at + 1


def tree_of(files: list[Tracked], until: float) -> bytes:
    """The hash of the tree that ``git commit`` would write for these files, which are in the order of an index."""
    # Open folders, the outermost first: name of each, and the entries that it has so far.
    folders: list[tuple[bytes, list[bytes]]] = [(b"", [])]
    for number, file in enumerate(files):
        if number % LOOKS == 0:
            _look(until)
        *above, name = file.path.split(b"/")
        same = 0
        while same < min(len(above), len(folders) - 1) and folders[same + 1][0] == above[same]:
            same += 1
        while len(folders) - 1 > same:
            _close(folders)
        folders += [(folder, []) for folder in above[same:]]
        folders[-1][1].append(b"%o %s\0%s" % (file.mode, name, file.digest))
    while len(folders) > 1:
        _close(folders)
    return _digest(b"tree", b"".join(folders[0][1]))


def _close(folders: list[tuple[bytes, list[bytes]]]) -> None:
    name, entries = folders.pop()
    folders[-1][1].append(b"40000 %s\0%s" % (name, _digest(b"tree", b"".join(entries))))


def _digest(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha1(b"%s %d\0" % (kind, len(content)) + content, usedforsecurity=False).digest()


def _changed(repository: Repository, files: list[Tracked], written: int, config: bytes, until: float) -> bool | None:
    """Whether a file is not as git saw it when it wrote the index, at ``written``."""
    top, unknown = os.fsencode(repository.top), False
    modes = re.search(rb"filemode\s*=\s*false", config, re.IGNORECASE) is None
    converts: bool | None = None
    for number, file in enumerate(files):
        if number % LOOKS == 0:
            _look(until)
        if not file.looked:
            continue
        path = top + b"/" + file.path
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        if stat.S_IFMT(status.st_mode) != file.mode & 0o170000:
            return True
        if modes and stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o100) != bool(file.mode & 0o100):
            return True
        if _as_seen(file, status, written):
            continue
        if converts is None:
            converts = _conversions(repository, files, config)
        same = _same_content(path, file, status)
        if same is False and not converts:
            return True
        unknown = unknown or same is not True
    return None if unknown else False


def _as_seen(file: Tracked, status: os.stat_result, written: int) -> bool:
    """Whether size and time are what git saw, and the time is before git looked: then it is the same content."""
    seconds, nanoseconds = divmod(status.st_mtime_ns, 10**9)
    same_time = file.mtime == (seconds & 0xFFFFFFFF, nanoseconds) or file.mtime == (seconds & 0xFFFFFFFF, 0)
    return same_time and status.st_size & 0xFFFFFFFF == file.size and status.st_mtime_ns < written


def _same_content(path: bytes, file: Tracked, status: os.stat_result) -> bool | None:
    """Whether a file has the content of the index; None if it is too large, or has lines that git may convert."""
    if stat.S_ISLNK(status.st_mode):
        return _digest(b"blob", os.readlink(path)) == file.digest
    try:
        content = read_regular_file(Path(os.fsdecode(path)), MAX_HASHED)
    except (OSError, FormatError):
        return None
    if _digest(b"blob", content) == file.digest:
        return True
    return None if b"\r\n" in content else False


def _conversions(repository: Repository, files: list[Tracked], config: bytes) -> bool:
    """Whether git stores files otherwise than they are on the disk, by an attribute or a setting of the repository."""
    places = [os.fsdecode(file.path) for file in files if file.path.rpartition(b"/")[2] == b".gitattributes"][:LOOKS]
    texts = [_text(repository.top / place) for place in places]
    texts.append(_text(repository.common / "info" / "attributes"))
    return b"autocrlf" in config.lower() or any(_CONVERTS.search(text) for text in texts)


def _text(path: Path) -> bytes:
    """A small file; empty if there is none."""
    try:
        return read_regular_file(path, 1 << 16)
    except (OSError, ValueError, FormatError):
        return b""


def _look(until: float) -> None:
    if time.monotonic() > until:
        raise _TooLateError
