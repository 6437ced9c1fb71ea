"""Collects source text early, before files can change, and only from files that the recorded process may read itself.

A program that began as root and has become another user may be taken over. It names the files of its code, and must not
have root copy others into the recording. A process of which nothing is known, because it ended before it could be
looked at, has the rights of every user: what only root, or only its own user, may read stays unread. The standard
library is no secret, wherever the interpreter was installed.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tachograph.format.spool.codes_table import CodeLines, DiskFile
from tachograph.format.spool.directory import MAX_SEGMENT_SIZE, SpoolProcess
from tachograph.format.spool.layout import CODE, NONE, SEGMENT_HEADER, Code
from tachograph.format.spool.records import decode_definition, record_header
from tachograph.recorder.collect.running import was_begun_by
from tachograph.recorder.collect.source_files import SourceFile, UnreadError, read_source
from tachograph.recorder.collect.source_fit import Changed, fits

_READ, _ENTER = 0o4, 0o1
_OVERRIDES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: with either, modes of files do not count."""

_LIBRARY = Path(os.__file__).resolve().parent
"""The standard library of the interpreter that records."""

_SITE = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True)
class Rights:
    """The rights of a process to read files: all, or as modes allow its users and groups."""

    everything: bool = False
    users: frozenset[int] = frozenset()
    groups: frozenset[int] = frozenset()

    def allow(self, descriptor: int) -> bool:
        """True if an open file may be read. Raises OSError if that cannot be found out."""
        if self.everything:
            return True
        folders = Path(os.readlink(f"/proc/self/fd/{descriptor}")).parents
        if _LIBRARY in folders and not _SITE & {folder.name for folder in folders}:
            return True
        if not self._has(os.fstat(descriptor), _READ):
            return False
        return all(self._has(folder.stat(), _ENTER) for folder in folders)

    def _has(self, status: os.stat_result, right: int) -> bool:
        mode = status.st_mode
        return bool(
            mode & right
            or (status.st_uid in self.users and mode >> 6 & right)
            or (status.st_gid in self.groups and mode >> 3 & right)
        )


EVERYTHING, EVERY_USERS = Rights(everything=True), Rights()


class SourceRights:
    """The rights of the recorded processes. Only root watches them: any other user can read no more than they can."""

    def __init__(self) -> None:
        self.watching = os.geteuid() == 0
        self._last: dict[int, Rights] = {}

    def look_at_last(self, pid: int) -> None:
        """Note the rights of a child that has ended and was not waited for yet: it will have no others."""
        if self.watching and (rights := rights_of(pid)) is not None:
            self._last[pid] = rights

    def of(self, pid: int, start_ns: int) -> Rights:
        """The rights that process ``pid``, which was there at ``start_ns`` (CLOCK_MONOTONIC), has now.

        What a process has written before may be read with them: one that has given up root's does not get them back.
        """
        if not self.watching:
            return EVERYTHING
        rights = self._last.get(pid) or rights_of(pid)
        # Afterwards: until then its id cannot have been given to another process.
        is_same = rights is not None and (pid in self._last or was_begun_by(pid, start_ns))
        return rights if is_same and rights is not None else EVERY_USERS

    @property
    def of_unknown(self) -> Rights:
        """The rights of a process of which nothing is known."""
        return EVERY_USERS if self.watching else EVERYTHING


def rights_of(pid: int) -> Rights | None:
    """The rights of a process by its user ids (real, effective, saved, of files) and group ids; None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = {key: value.split() for key, _, value in (line.partition(":") for line in text.splitlines())}
    if not fields.keys() >= {"Uid", "Gid", "Groups", "CapEff"}:
        return None
    users = frozenset(map(int, fields["Uid"]))
    if users == {0} and int(fields["CapEff"][0], 16) & _OVERRIDES:
        return EVERYTHING
    groups = frozenset(map(int, fields["Gid"] + fields["Groups"]))
    return Rights(users=users, groups=groups) if users == {0} else Rights(users=users - {0}, groups=groups - {0})


MAX_FILE = 4 << 20
"""Bytes of the largest file that is read."""

MAX_TOTAL = 128 << 20
"""Bytes of all files that are kept."""

MAX_TRIED = 50_000
"""Files that could not be read and are remembered, so as not to be tried again; then all of them may be."""

CHUNK = 64 << 10
"""Bytes of a segment that are looked at in one read."""

CODE_FILE = "<string>"
"""co_filename of what ``python -c`` runs."""


@dataclass(frozen=True)
class _Read:
    """A file that was read, and the rights with which it was."""

    file: SourceFile
    rights: Rights


class SourceStore:
    """Reads files once and keeps their bytes.

    Paths are relative to ``directory``, where the program was started. ``code`` is what ``python -c`` runs. A file
    that was modified after ``not_after_ns`` (ns since the epoch) is no longer what ran, and is not read. One that was
    changed after ``began_ns``, when the program began (None: not known), may be another one. ``rights`` tells what the
    processes may read; without, it is all that this process may.
    """

    def __init__(
        self,
        directory: Path,
        code: str | None = None,
        not_after_ns: int | None = None,
        rights: SourceRights | None = None,
        began_ns: int | None = None,
    ) -> None:
        self._directory = directory
        self._not_after_ns = not_after_ns
        self._began_ns = began_ns
        self._room = MAX_TOTAL
        self.rights = rights
        self._files: dict[str, _Read] = {}
        self._tried: set[tuple[str, Rights]] = set()
        self._unread: dict[str, str] = {}
        self._code = None if code is None else code.encode("utf-8", "surrogateescape")

    def read(self, path: str, codes: Sequence[CodeLines] = ()) -> bytes | None:
        """The bytes of the file that ``co_filename`` names; None if there is none, or it is not read (``unread``).

        One that was not read before is read with the rights of a process of which nothing is known. It is that of
        ``codes``, as far as they can tell.
        """
        if path == CODE_FILE and self._code is not None:
            return self._code
        rights = EVERYTHING if self.rights is None else self.rights.of_unknown
        self.read_with(rights, path)
        if (read := self._files.get(path)) is None:
            return None
        if not self._fits(read, path, codes):
            # It may have been changed, and imported anew, since.
            again = self._load(read.rights, path)
            if again is None or not self._fits(again, path, codes):
                self._unread[path] = "sources_changed"
                return None
            read = self._files[path] = again
        self._unread.pop(path, None)
        return read.file.content

    def identify(self, path: str) -> DiskFile | None:
        """The file on the disk that was read for ``path``; None if none was, or it is a member of an archive."""
        read = self._files.get(path)
        return None if read is None else read.file.identity

    def read_for(self, pid: int, start_ns: int, paths: Iterable[str]) -> None:
        """Read files that a process has named before now, with the rights that it has now."""
        unread = [path for path in paths if path not in self._files and not path.startswith("<")]
        if not unread:
            return  # a forked process mostly names the files that its parent has named
        rights = EVERYTHING if self.rights is None else self.rights.of(pid, start_ns)
        for path in unread:
            self.read_with(rights, path)

    def read_with(self, rights: Rights, path: str) -> None:
        """Read a file if it was not read and ``rights`` allow that."""
        # Code that is made at run time may have as many names of no file as the program has time for.
        if path not in self._files and not path.startswith("<") and (path, rights) not in self._tried:
            if len(self._tried) >= MAX_TRIED:
                self._tried.clear()
                self._unread.clear()
            self._tried.add((path, rights))
            read = self._load(rights, path)
            if read is not None:
                self._files[path] = read
                self._room -= len(read.file.content)
                self._unread.pop(path, None)

    def unread(self, path: str) -> str | None:
        """The entry of the quality ledger for a file that is there and has no text; None for any other."""
        return self._unread.get(path)

    def _load(self, rights: Rights, path: str) -> _Read | None:
        try:
            # A Path would keep the name: it interns what it is made of, for ever in CPython 3.12.
            full = os.path.join(self._directory, path)
            file = read_source(full, min(MAX_FILE, self._room), self._not_after_ns, rights.allow)
        except UnreadError as error:
            # Of a process with more rights more is known.
            if error.loss != "sources_withheld" or path not in self._unread:
                self._unread[path] = error.loss
            return None
        return None if file is None else _Read(file, rights)

    def _fits(self, read: _Read, path: str, codes: Sequence[CodeLines]) -> bool:
        changed = None
        if self._began_ns is not None and read.file.changed_ns >= self._began_ns:
            changed = Changed(read.file.compiled_from_another, may_compile=read.rights.everything)
        return fits(read.file.content, path, codes, changed)


def _open(process: SpoolProcess, sequence: int) -> io.RawIOBase | io.BytesIO:
    if process.archived:
        return io.BytesIO(process.segment_data(sequence))
    try:
        return process.segment_path(sequence).open("rb", buffering=0)
    except FileNotFoundError:
        return io.BytesIO(process.segment_data(sequence))


class SourceScout:
    """Follows the segments that are being written and reads the files of new code objects early."""

    def __init__(self, store: SourceStore) -> None:
        self.store = store
        self._positions: dict[str, tuple[int, int]] = {}

    def look(self, processes: Iterable[SpoolProcess]) -> None:
        """Read the files of the code objects that were recorded since the last look."""
        for process in processes:
            if process.control is None:
                continue
            sequence, position = self._positions.get(process.prefix, (0, SEGMENT_HEADER))
            while True:
                position = self._follow(process, sequence, position)
                if sequence >= process.control.current_segment:
                    break
                sequence, position = sequence + 1, SEGMENT_HEADER
            self._positions[process.prefix] = sequence, position

    def position(self, prefix: str) -> tuple[int, int]:
        """The segment of a process and the place in it up to which it was followed."""
        return self._positions.get(prefix, (0, SEGMENT_HEADER))

    def forget(self, prefix: str) -> None:
        """A process will write no more."""
        self._positions.pop(prefix, None)

    def _follow(self, process: SpoolProcess, sequence: int, position: int) -> int:
        """Go through the committed records from ``position``; the position of the first that is not there yet."""
        try:
            with _open(process, sequence) as file:
                size = CHUNK
                while True:
                    file.seek(position)
                    data = file.read(size) or b""
                    used, needed, named = self._scan(data, position, sequence)
                    # Its rights are looked at after what it says: it may have become another user before it said that.
                    if named:
                        self.store.read_for(process.pid, process.start_ns, named)
                    position += used
                    if len(data) < size or not needed:
                        return position
                    size = max(CHUNK, needed)
        except OSError:
            return position  # made into a part, whose files were read before

    def _scan(self, data: bytes, position: int, sequence: int) -> tuple[int, int, list[str]]:
        """Bytes of ``data`` that were whole records, bytes that the next one needs (0: there is none yet), files."""
        at = 0
        named: list[str] = []
        while at + 8 <= len(data):
            header = int.from_bytes(data[at : at + 8], "little")
            length, kind = header & NONE, header >> 32 & 0xFF
            check = record_header(position + at, length, kind, sequence) >> 48
            if not 8 <= length <= MAX_SEGMENT_SIZE or header >> 48 != check:
                return at, 0, named
            if at + length > len(data):
                return at, length, named
            if kind == CODE:
                record = decode_definition(kind, data[at : at + length])
                if isinstance(record, Code):
                    named.append(record.filename)
            at += length
        return at, 8, named
