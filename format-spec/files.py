"""Reads files of a recording, which may hold anything: no links, no devices, no endless ones."""

from __future__ import annotations

import os
import stat

from .errors import FormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    import pyarrow as pa

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
