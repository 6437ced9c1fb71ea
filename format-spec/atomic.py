"""Reads and writes files of a recording: written ones appear whole or not at all, read ones are not trusted.

A file of a recording may hold anything: no links, devices or endless files are read.
"""

from __future__ import annotations

import io
import os
import stat

from .errors import FormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import IO, Any, BinaryIO

    import pyarrow as pa

UNFINISHED = ".tmp-"
"""Prefix of the names of files that are not complete yet (SPEC.md): readers skip them."""


def unfinished(name: str) -> str:
    """The name that something has until it is whole and is called ``name``."""
    return UNFINISHED + name


class ReplacingFile:
    """A new file, readable by its owner only, that takes its name when it is complete.

    Use it as a context manager and write to ``stream``: at the end the file takes its name, and ``size`` is its size in
    bytes; an exception leaves no file. Where one block cannot hold all the writing, call ``commit`` or ``discard``.

    Errors:
        OSError: it cannot be made, or its last bytes cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.size = 0
        self._path = os.fspath(path)
        folder, name = os.path.split(self._path)
        self._temporary = os.path.join(folder, unfinished(name))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(self._temporary, flags, 0o600)
        except FileExistsError:
            # Left by a killed writer; unlink removes the name only, also where it was made a link.
            os.unlink(self._temporary)
            descriptor = os.open(self._temporary, flags, 0o600)
        self.stream = _Sink(open(descriptor, "wb"))  # noqa: SIM115  # closed by commit or discard

    def __enter__(self) -> ReplacingFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()

    def commit(self) -> None:
        """Close the file and give it its name.

        Errors:
            OSError: the last bytes cannot be written; the file is discarded.
        """
        try:
            self.stream.finish()
            self.size = os.stat(self._temporary).st_size
            os.replace(self._temporary, self._path)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Close the file and remove it."""
        self.stream.abandon()
        try:
            os.unlink(self._temporary)
        except FileNotFoundError:
            return


class _Sink(io.RawIOBase):
    """A stream that, once it was abandoned, discards all further writes.

    pyarrow's writer tries to finish its file when it is collected as garbage, also after the disk was full.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._abandoned = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes if self._abandoned else self._file.write(data)

    def tell(self) -> int:
        return 0 if self._abandoned else self._file.tell()

    def finish(self) -> None:
        self._file.close()

    def abandon(self) -> None:
        self._abandoned = True
        try:
            self._file.close()
        except OSError:
            return  # the disk is full, and what could not be written is not wanted any more


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a small file that appears at once, readable by its owner only.

    Errors:
        OSError: it cannot be written.
    """
    with ReplacingFile(path) as file:
        file.stream.write(data)


MAX_IN_MEMORY = 64 << 20
"""Bytes of a file that lies within another, or in memory, that are copied in memory; more go to a temporary file."""


def read_regular_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """The bytes of a file that is not a link, pipe or device and not larger than ``limit``.

    Errors:
        OSError: it cannot be read.
        FormatError: it is not a regular file, or larger.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{os.path.basename(path)} is not a regular file")
        if status.st_size > limit:
            raise FormatError(
                f"{os.path.basename(path)} has {status.st_size} bytes, more than the {limit} that it may have"
            )
        return file.read()


def arrow_file(file: IO[bytes], size: int) -> pa.NativeFile:
    """The same file, of ``size`` bytes, with nothing of Python in it; ``file`` can be closed.

    Errors:
        OSError: it cannot be read, or is not a regular file.
    """
    import pyarrow as pa

    folder = next(filter(os.path.isdir, ("/proc/self/fd", "/dev/fd")), None)
    descriptor = _descriptor_of(file)
    if folder is not None and descriptor is not None:
        return pa.OSFile(f"{folder}/{descriptor}")
    if folder is not None and size > MAX_IN_MEMORY:
        import shutil
        import tempfile

        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
            copy.flush()
            return pa.OSFile(f"{folder}/{copy.fileno()}")
    buffer = pa.allocate_buffer(size)
    room, at = memoryview(buffer), 0
    while at < size and (count := file.readinto(room[at:])):  # type: ignore[attr-defined]  # binary files have it
        at += count
    return pa.BufferReader(buffer.slice(0, at))


def _descriptor_of(file: IO[bytes]) -> int | None:
    """The descriptor of a regular file; None for one that lies in memory or within another."""
    try:
        descriptor = file.fileno()
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError("it is not a regular file")
    return descriptor
