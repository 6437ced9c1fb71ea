"""Opens a recording, a directory or a zip file (``zip_store``), without trusting it."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Protocol

from .atomic import arrow_file
from .errors import FormatError, first_line
from .manifest import MANIFEST_NAME, MAX_MANIFEST_SIZE, Manifest
from .spool.directory import SPOOL_NAME, SpoolDirectory

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


MAX_READ = 64 << 20
"""Bytes that ``read`` gives at most, by default."""


class _Store(Protocol):
    """Where the members lie; names are relative to the manifest's folder, with ``/``."""

    @property
    def unreadable(self) -> tuple[type[Exception], ...]:
        """Exceptions from members that are damaged, or made to do harm."""
        ...

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
        """True if there is such a member."""
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
        except self._store.unreadable as error:
            raise FormatError(f"cannot read {name} in {self.path}: {first_line(error)}") from error

    def read(self, name: str, limit: int = MAX_READ) -> bytes:
        """The bytes of a member.

        Errors:
            FormatError: as ``open``, or it is larger than ``limit``.
        """
        if self.size(name) > limit:
            raise FormatError(f"{name} in {self.path} has {self.size(name)} bytes, more than it may have ({limit})")
        with self.open(name) as file:
            return file.read(limit)

    def parquet(self, name: str, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
        """Open a Parquet member, such as ``cpu.parquet``; the caller closes it (``with``).

        ``footer`` is its metadata, if it was opened before: its footer is not read again.

        Reading from it raises OSError or pyarrow.ArrowException where a page is damaged.

        Errors:
            FormatError: as ``open``, or it is not Parquet.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self.arrow_file(name), metadata=footer, page_checksum_verification=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FormatError(f"{name} in {self.path} is not a whole Parquet file: {first_line(error)}") from error

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
            except self._store.unreadable as error:
                raise FormatError(f"cannot read {name} in {self.path}: {first_line(error)}") from error

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
        except self._store.unreadable as error:
            raise FormatError(f"cannot unpack the spool of {self.path}: {first_line(error)}") from error

    def close(self) -> None:
        """Close the files and remove the unpacked ones."""
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
        exists, is_folder, is_file = path.exists(), path.is_dir(), path.is_file()
        has_manifest = is_folder and (path / MANIFEST_NAME).is_file()
    except OSError as error:
        raise FormatError(f"cannot open {path}: {first_line(error)}") from error
    if is_folder:
        if not has_manifest:
            raise FormatError(f"{path} is not a recording: it has no {MANIFEST_NAME}")
        return Container(path, _DirectoryStore(path))
    if not exists:
        raise FormatError(f"{path} does not exist")
    if is_file:
        from .zip_store import open_zip  # loads zipfile

        store = open_zip(path)
        if store is not None:
            return Container(path, store)
    raise FormatError(f"{path} is not a recording: it is neither a directory nor a zip file")


class _DirectoryStore:
    unreadable = (OSError, EOFError, RuntimeError)  # NotImplementedError, as of Arrow, is a RuntimeError

    def __init__(self, path: Path) -> None:
        self._path = path

    def sizes(self) -> dict[str, int]:
        sizes = {}
        waiting = [(os.fspath(self._path), "")]
        while waiting:
            folder, prefix = waiting.pop()
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue  # unreadable or gone: the error names the missing member
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, f"{name}/"))
                elif entry.is_file(follow_symlinks=False):
                    sizes[name] = entry.stat(follow_symlinks=False).st_size
        return sizes

    def open(self, name: str) -> IO[bytes]:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        return open(os.open(self._path / name, flags), "rb")

    def spool(self) -> SpoolDirectory | None:
        path = self._path / SPOOL_NAME
        return SpoolDirectory(path) if path.is_dir() and not path.is_symlink() else None

    def close(self) -> None:
        pass
