"""Room on the disk: a spool may take only so much that the tables can be made beside it."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LEAST = 1 << 19
"""Bytes that are left free in any case: a manifest, and tables that have hardly a row."""

OF_PLAIN = 4
"""Tables take at most this part of what is not compressed in the spool: segments, and definitions in its parts."""

MADE_ANEW_S, COST = 1.0, 0.01
"""For how long the size of a spool is taken to be what it was, and which share of the time may go into looking."""


def free_bytes(directory: Path) -> int:
    """Bytes that this user may still write to the disk of a directory.

    Errors:
        OSError: it is not there, for example.
    """
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize


def bytes_of_tables(spool: Path) -> int:
    """Bytes that the tables of a spool need, by the size of its files."""
    compressed = plain = 0
    for name, size in _files(spool):
        if name.endswith(".parquet"):
            compressed += size
        else:
            plain += size
    return LEAST + compressed + plain // OF_PLAIN


class SpoolRoom:
    """Says whether a spool may get another segment. Where it may not, records stay in memory, as on a full disk.

    A recording that has filled its disk could not be finished there: its tables need room while the spool still has its
    own. What is written later finds no room and is counted; what was written before is kept.
    """

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        # Bytes of all segments that were ever made: no spool is larger.
        self._made = 0
        self._tables = 0
        self._again = 0.0

    def check(self, size: int, sequence: int) -> None:
        """Raise OSError, as on a full disk, if a segment of ``size`` bytes would take room that the tables need.

        The first segment of a process may: it is small, and thousands of processes would else wait in memory.
        """
        if sequence > 0:
            free = free_bytes(self._spool) - size
            if free < LEAST + self._made + size and free < self._bytes_of_tables() + size // OF_PLAIN:
                raise OSError(errno.ENOSPC, "the tables need the room that is left")
        self._made += size

    def _bytes_of_tables(self) -> int:
        begin = time.monotonic()
        if begin >= self._again:
            self._tables = bytes_of_tables(self._spool)
            end = time.monotonic()
            self._again = end + max(MADE_ANEW_S, (end - begin) / COST)
        return self._tables


def _files(directory: Path) -> Iterator[tuple[str, int]]:
    """The names of the files below a directory, and the room that each takes; what goes away meanwhile is left out."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(Path(entry.path))
                else:
                    yield entry.name, entry.stat(follow_symlinks=False).st_blocks * 512
