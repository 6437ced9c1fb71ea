"""The process log in memory: processes append to it without waiting for a disk, and we copy it into the spool.

They open it as a descriptor of ours (SPEC.md, "Process log"), and each record has 512 bytes there. In the spool most
have an eighth of that: the log would else be full after 50,000 processes. A process that may not look into ours, as it
is of another user or has fewer rights, appends to the file of the spool itself.
"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

from tachograph.format.spool.process_log import BOUND, LOG_NAME, RECORD_SIZE, shortened

CHUNK = 1 << 16
FREED_AT_ONCE = 1 << 18
"""Bytes that were copied are freed when there are so many of them; of whole pages."""

_KIND_AT = 8
_BLOCK = 512


class MemoryLog:
    """Copies the log at ``descriptor`` into the spool; called by one thread at a time."""

    def __init__(self, spool: Path, descriptor: int) -> None:
        self._path = spool / LOG_NAME
        self._descriptor = descriptor
        self._copied = self._freed = 0
        # What is to be written of the records up to ``_copied``, and was not.
        self._left = b""

    def append(self, record: bytes) -> None:
        """Append a record for a process that cannot; any thread may.

        Errors:
            OSError: the log waits for the disk and is full, for example.
        """
        if os.fstat(self._descriptor).st_blocks * _BLOCK >= BOUND:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(descriptor, record)
        finally:
            os.close(descriptor)

    def copy(self) -> None:
        """Append to the log in the spool what is new in memory.

        Errors:
            OSError: there is no room, for example. What was not copied is there the next time.
        """
        size = os.fstat(self._descriptor).st_size // RECORD_SIZE * RECORD_SIZE
        if size == self._copied and not self._left:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o600)
        try:
            self._write_left(file)
            while self._copied < size:
                data = os.pread(self._descriptor, min(CHUNK, size - self._copied), self._copied)
                self._copied += len(data)
                self._left = _as_written(data, full=os.fstat(file).st_size >= BOUND)
                self._write_left(file)
        finally:
            os.close(file)
        self._free()

    def _write_left(self, file: int) -> None:
        while self._left:
            self._left = self._left[os.write(file, self._left) :]

    def _free(self) -> None:
        end = self._copied // FREED_AT_ONCE * FREED_AT_ONCE
        if end > self._freed:
            with mmap.mmap(self._descriptor, end - self._freed, offset=self._freed) as memory:
                memory.madvise(mmap.MADV_REMOVE)
            self._freed = end


def _as_written(data: bytes, *, full: bool) -> bytes:
    """Whole records of the memory as they are in the spool: one byte of each, once the log there is full."""
    if full:
        return data[_KIND_AT::RECORD_SIZE]
    return b"".join([shortened(data[at : at + RECORD_SIZE]) for at in range(0, len(data), RECORD_SIZE)])
