"""Copies memory into files a page at a time, and only pages that differ: each page that is written goes to a disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

PAGE = 4096
CHUNK = 1 << 16
"""Longer than any record: behind so many zero bytes there is nothing new."""

_ZEROS = bytes(CHUNK)


def copy_new(
    path: Path, memory: int, size: int, low: int, seen: tuple[int, bytes], *, made: bool
) -> tuple[tuple[int, bytes], int]:
    """Copy what was appended to a segment since it was the same below ``low``, the begin of a page.

    ``seen`` is what the last call gave; ``made`` tells whether there was one. Returns what was found, with its place,
    for the next call, and the begin of the last page in use.

    Errors:
        FileNotFoundError: the file was made before, and has been taken away.
        OSError: there is no room, for example.
    """
    data = b""
    while low + len(data) < size:
        chunk = os.pread(memory, min(CHUNK, size - low - len(data)), low + len(data))
        used = _pages_in_use(chunk)
        data += chunk[:used]
        if used < len(chunk):
            break
    copied = low, data
    if not made or copied != seen:
        descriptor = _open(path, size, made=made)
        try:
            _write_pages(descriptor, data, low)
        finally:
            os.close(descriptor)
    return copied, max(low, low + len(data) - PAGE)


def copy_whole(path: Path, memory: int, size: int, *, made: bool) -> None:
    """Copy a segment into which nothing is written any more; a file that is new takes no more room than it needs.

    Errors:
        as copy_new.
    """
    descriptor = _open(path, size, made=made, sparse=True)
    try:
        empty = os.fstat(descriptor).st_blocks == 0
        for at in range(0, size, CHUNK):
            if empty and not has_data(memory, at):
                break
            _write_pages(descriptor, os.pread(memory, min(CHUNK, size - at), at), at)
    finally:
        os.close(descriptor)


def has_data(memory: int, at: int) -> bool:
    """True if memory has a page from ``at`` on: one that was never touched has none, and is zeros."""
    try:
        os.lseek(memory, at, os.SEEK_DATA)
    except OSError as error:
        return error.errno != errno.ENXIO
    return True


def read_used(memory: int, size: int) -> bytes:
    """The bytes of memory of ``size`` up to the last page that was touched: what follows is zeros."""
    try:
        end = os.lseek(memory, 0, os.SEEK_HOLE)
    except OSError:
        end = size
    return os.pread(memory, size if end < size and has_data(memory, end) else min(end, size), 0)


def write_changed(path: Path, data: bytes, size: int, *, made: bool, sparse: bool) -> None:
    """Make a file of ``size`` begin with these bytes; ``sparse``: if it is new, with no more room than they need.

    Errors:
        as copy_new.
    """
    descriptor = _open(path, size, made=made, sparse=sparse)
    try:
        _write_pages(descriptor, data, 0)
    finally:
        os.close(descriptor)


def _pages_in_use(chunk: bytes) -> int:
    """Bytes up to the end of the last page that is not all zero."""
    if chunk == _ZEROS[: len(chunk)]:
        return 0
    end = len(chunk)
    while chunk[end - PAGE : end] == _ZEROS[:PAGE]:
        end -= PAGE
    return end


def _write_pages(descriptor: int, data: bytes, at: int) -> None:
    old = os.pread(descriptor, len(data), at)
    if old == data:
        return
    begin = 0
    while begin < len(data):
        if data[begin : begin + PAGE] == old[begin : begin + PAGE]:
            begin += PAGE
            continue
        end = begin + PAGE
        while end < len(data) and data[end : end + PAGE] != old[end : end + PAGE]:
            end += PAGE
        write_all(descriptor, data[begin:end], at + begin)
        begin = end


def write_all(descriptor: int, data: bytes, at: int) -> None:
    """Write bytes at a place, in as many calls as that takes."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def _open(path: Path, size: int, *, made: bool, sparse: bool = False) -> int:
    """A file of the spool for reading and writing; made for the first time, with its blocks on the disk if not sparse.

    A process that was alone for a while may have made it.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    if made:
        return os.open(path, flags)
    try:
        descriptor, ours = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600), True
    except FileExistsError:
        descriptor, ours = os.open(path, flags), False
    try:
        if sparse:
            os.ftruncate(descriptor, size)
        else:
            os.posix_fallocate(descriptor, 0, size)
    except OSError:
        os.close(descriptor)
        if ours:
            path.unlink(missing_ok=True)
        raise
    return descriptor
