"""Opens a recording, a directory or a zip file, without trusting it."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Protocol

from .errors import FormatError
from .files import arrow_file
from .manifest import MANIFEST_NAME, MAX_MANIFEST_SIZE, Manifest
from .spool.directory import SPOOL_NAME, SpoolDirectory

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_READ = 64 << 20
"""Bytes that ``read`` gives at most, if not told otherwise."""


UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # zipfile: a compression, or a feature, that it does not know
    RuntimeError,  # zipfile: an encrypted member
    EOFError,
    UnicodeDecodeError,
    struct.error,
)
"""What files and zip files raise that are damaged, or made to do harm."""


class _Store(Protocol):
    """Where the members lie; names are relative to the manifest's folder, with ``/``."""

    def sizes(self) -> dict[str, int]: ...

    def open(self, name: str) -> IO[bytes]: ...

    def spool(self) -> SpoolDirectory | None: ...

    def close(self) -> None: ...


class Container:
    """An opened recording: its manifest, its tables and, where it was not finished, its spool.

    Use it as a context manager. Members are read by name; no path found inside is ever followed.
    """

    def __init__(self, path: Path, store: _Store) -> None:
        self.path = path
        self._store = store
        self._sizes = store.sizes()

    def names(self) -> list[str]:
        """Names of all members, sorted, with ``/``."""
        return sorted(self._sizes)

    def has(self, name: str) -> bool:
        """Whether there is such a member."""
        return name in self._sizes

    def size(self, name: str) -> int:
        """Size of a member in bytes.

        Errors:
            FormatError: there is none of that name.
        """
        if name not in self._sizes:
            raise FormatError(f"{self.path} has no {name}: it is not a recording, or not a whole one")
        return self._sizes[name]

    def open(self, name: str) -> IO[bytes]:
        """Open a member for reading, seekable.

        Errors:
            FormatError: there is none, or it cannot be read.
        """
        self.size(name)
        try:
            return self._store.open(name)
        except UNREADABLE as error:
            raise FormatError(f"cannot read {name} in {self.path}: {_first_line(error)}") from error

    def read(self, name: str, limit: int = MAX_READ) -> bytes:
        """The bytes of a member.

        Errors:
            FormatError: as ``open``, or it is larger than ``limit``.
        """
        if self.size(name) > limit:
            raise FormatError(f"{name} in {self.path} has {self.size(name)} bytes, more than it may have ({limit})")
        with self.open(name) as file:
            return file.read(limit)

    def parquet(self, name: str, known: pq.FileMetaData | None = None) -> pq.ParquetFile:
        """Open a Parquet member, such as ``cpu.parquet``; the caller closes it (``with``).

        ``known`` is its metadata, if it was opened before: its footer is not read again.

        Reading from it raises OSError or pyarrow.ArrowException where a page is damaged.

        Errors:
            FormatError: as ``open``, or it is not Parquet.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self.arrow_file(name), metadata=known, page_checksum_verification=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FormatError(f"{name} in {self.path} is not a whole Parquet file: {_first_line(error)}") from error

    def arrow_file(self, name: str) -> pa.NativeFile:
        """Open a member as a file of Arrow's own.

        Arrow's threads let go of a file, and of what was read from it, in their own time. Of a Python object they would
        need the interpreter's lock for that, which ends the process (SIGABRT) if the interpreter is shutting down.

        Errors:
            FormatError: as ``open``.
        """
        with self.open(name) as file:
            try:
                return arrow_file(file, self.size(name))
            except UNREADABLE as error:
                raise FormatError(f"cannot read {name} in {self.path}: {_first_line(error)}") from error

    def manifest(self) -> Manifest:
        """The manifest.

        Errors:
            FormatError: it cannot be read, is none, or is of a newer major version.
        """
        return Manifest.from_bytes(self.read(MANIFEST_NAME, MAX_MANIFEST_SIZE), f"{self.path}/{MANIFEST_NAME}")

    def spool(self) -> SpoolDirectory | None:
        """The spool, if there is one; that of a zip file is unpacked into a temporary folder, removed at ``close``.

        Errors:
            FormatError: it cannot be unpacked, or would be too large.
        """
        try:
            return self._store.spool()
        except UNREADABLE as error:
            raise FormatError(f"cannot unpack the spool of {self.path}: {_first_line(error)}") from error

    def close(self) -> None:
        """Close what is open and remove what was unpacked."""
        self._store.close()

    def __enter__(self) -> Container:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()


def open_container(path: Path | str) -> Container:
    """Open a recording: a directory with a manifest, or a zip file of one (with or without the folder inside).

    Errors:
        FormatError: there is nothing at ``path``, or it is no recording, or it is one that may not be trusted.
    """
    path = Path(path)
    try:
        store: _Store
        if path.is_dir():
            if not (path / MANIFEST_NAME).is_file():
                raise FormatError(f"{path} is not a recording: it has no {MANIFEST_NAME}")
            store = _DirectoryStore(path)
        elif not path.exists():
            raise FormatError(f"{path} does not exist")
        elif path.is_file() and zipfile.is_zipfile(path):
            from .zip_store import ZipStore  # not loaded for folders

            store = ZipStore(path)
        else:
            raise FormatError(f"{path} is not a recording: it is neither a directory nor a zip file")
    except UNREADABLE as error:
        raise FormatError(f"cannot open {path}: {_first_line(error)}") from error
    return Container(path, store)


class _DirectoryStore:
    def __init__(self, path: Path) -> None:
        self._path = path

    def sizes(self) -> dict[str, int]:
        found = {}
        waiting = [(os.fspath(self._path), "")]
        while waiting:
            folder, prefix = waiting.pop()
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue  # a folder that may not be read, or has gone: what is missing is told by its name
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, f"{name}/"))
                elif entry.is_file(follow_symlinks=False):
                    found[name] = entry.stat(follow_symlinks=False).st_size
        return found

    def open(self, name: str) -> IO[bytes]:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        return open(os.open(self._path / name, flags), "rb")

    def spool(self) -> SpoolDirectory | None:
        path = self._path / SPOOL_NAME
        return SpoolDirectory(path) if path.is_dir() and not path.is_symlink() else None

    def close(self) -> None:
        pass


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
