"""The store of a recording in a zip file: its members, checked before any of them is read.

It is a module of its own because ``zipfile`` is slow to import, and most recordings are folders.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import IO

from .errors import FormatError, first_line
from .manifest import MANIFEST_NAME
from .spool.directory import SPOOL_NAME, SpoolDirectory

MAX_MEMBERS = 200_000
MAX_TOTAL_SIZE = 1 << 40
MAX_RATIO = 200
"""Highest ratio of a member's unpacked size to its packed size, where it unpacks to more than RATIO_FREE bytes."""
RATIO_FREE = 64 << 20
MAX_SPOOL_SIZE = 16 << 30
MAX_IN_MEMORY = 64 << 20
"""A deflated member of more bytes is unpacked into a temporary file."""
_COPY = 1 << 20


UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # a compression, or a feature, that zipfile does not know
    RuntimeError,  # an encrypted member
    EOFError,
    UnicodeDecodeError,
    struct.error,
)
"""Exceptions from zip files that are damaged, or made to do harm."""


def open_zip(path: Path) -> ZipStore | None:
    """The store of a zip file; None if the file is none.

    Errors:
        FormatError: it cannot be read, or may not be trusted.
    """
    try:
        return ZipStore(path) if zipfile.is_zipfile(path) else None
    except UNREADABLE as error:
        raise FormatError(f"cannot open {path}: {first_line(error)}") from error


class ZipStore:
    """A zip file of a recording, with or without the folder inside."""

    unreadable = UNREADABLE

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zip = zipfile.ZipFile(path)
        self._unpacked: tempfile.TemporaryDirectory[str] | None = None
        try:
            self._members = self._checked_members()
        except BaseException:
            self._zip.close()
            raise

    def sizes(self) -> dict[str, int]:
        """Sizes of the members by name."""
        return {name: info.file_size for name, info in self._members.items()}

    def open(self, name: str) -> IO[bytes]:
        """A member, seekable."""
        info = self._members[name]
        if info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1:
            return io.BufferedReader(_Slice(self._path, self._data_offset(info), info.file_size))
        # Parquet is read back and forth, which a deflated stream can only do by starting again and again.
        file: IO[bytes] = io.BytesIO() if info.file_size <= MAX_IN_MEMORY else tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._copy(info, file)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def spool(self) -> SpoolDirectory | None:
        """The spool, unpacked until ``close``; None if there is none."""
        members = {name: info for name, info in self._members.items() if name.startswith(f"{SPOOL_NAME}/")}
        if not members:
            return None
        if self._unpacked is None:
            if sum(info.file_size for info in members.values()) > MAX_SPOOL_SIZE:
                raise FormatError(f"the spool in {self._path} would unpack to more than {MAX_SPOOL_SIZE} bytes")
            self._unpacked = tempfile.TemporaryDirectory(prefix="tachograph-")
            for name, info in members.items():
                target = Path(self._unpacked.name, *name.split("/"))
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    self._copy(info, file)
        return SpoolDirectory(Path(self._unpacked.name, SPOOL_NAME))

    def close(self) -> None:
        """Close the file and remove the unpacked files."""
        self._zip.close()
        if self._unpacked is not None:
            self._unpacked.cleanup()

    def _copy(self, info: zipfile.ZipInfo, target: IO[bytes]) -> None:
        left = info.file_size
        with self._zip.open(info) as source:
            while block := source.read(min(_COPY, left + 1)):
                left -= len(block)
                if left < 0:
                    raise FormatError(f"{info.filename} in {self._path} is larger than the zip file says")
                target.write(block)

    def _data_offset(self, info: zipfile.ZipInfo) -> int:
        with self._zip.open(info):
            pass  # checks that the local header agrees with the directory
        with self._path.open("rb") as file:
            file.seek(info.header_offset + 26)
            name_length, extra_length = file.read(2), file.read(2)
        return info.header_offset + 30 + int.from_bytes(name_length, "little") + int.from_bytes(extra_length, "little")

    def _checked_members(self) -> dict[str, zipfile.ZipInfo]:
        infos = self._zip.infolist()
        if len(infos) > MAX_MEMBERS:
            raise FormatError(f"{self._path} has {len(infos)} members, more than a recording has")
        if sum(info.file_size for info in infos) > MAX_TOTAL_SIZE:
            raise FormatError(f"{self._path} would unpack to more than {MAX_TOTAL_SIZE} bytes: it is not opened")
        members: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            self._check_member(info)
            if not info.is_dir():
                if info.filename in members:
                    raise FormatError(f"{self._path} has two members named {info.filename!r}")
                members[info.filename] = info
        return self._without_folder(members)

    def _check_member(self, info: zipfile.ZipInfo) -> None:
        name = info.filename
        parts = name.rstrip("/").split("/")
        # orig_filename still has what zipfile cuts off (NUL) or turns round (backslash, on Windows).
        odd = info.orig_filename != name or "\\" in name or ":" in parts[0] or len(name) > 512
        if odd or any(part in ("", ".", "..") for part in parts):
            raise FormatError(f"{self._path} has a member with the unsafe name {info.orig_filename[:80]!r}")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FormatError(f"{self._path} has a member that is neither stored nor deflated: {name!r}")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise FormatError(f"{self._path} has a member that is not a plain file: {name!r}")
        if info.file_size > RATIO_FREE and info.file_size > MAX_RATIO * info.compress_size:
            raise FormatError(f"{name!r} in {self._path} would unpack to {info.file_size} bytes: it is not opened")

    def _without_folder(self, members: dict[str, zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
        if MANIFEST_NAME in members:
            return members
        tops = [name for name in members if name.count("/") == 1 and name.endswith(f"/{MANIFEST_NAME}")]
        if len(tops) != 1:
            raise FormatError(f"{self._path} is not a recording: it has no {MANIFEST_NAME}, or more than one")
        folder = tops[0][: -len(MANIFEST_NAME)]
        return {name[len(folder) :]: info for name, info in members.items() if name.startswith(folder)}


class _Slice(io.RawIOBase):
    """A stored member of a zip file, read where it lies."""

    def __init__(self, path: Path, start: int, size: int) -> None:
        self._file = path.open("rb", buffering=0)
        self._start, self._size, self._at = start, size, 0
        if start + size > path.stat().st_size:
            self._file.close()
            raise zipfile.BadZipFile("a member reaches beyond the end of the file")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        length = max(0, min(len(buffer), self._size - self._at))
        self._file.seek(self._start + self._at)
        count = self._file.readinto(memoryview(buffer)[:length]) or 0
        self._at += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
