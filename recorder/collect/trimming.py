"""Gives back the disk that processes took beforehand and did not need, once they are over.

A process writes into segments whose blocks it has allocated: megabytes, of which one that lived for a second has used
a few kilobytes. Thousands of such processes, as in a build, would fill a disk.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.format.spool.directory import MAX_SEGMENT_SIZE
from tachograph.format.spool.segment import used_length

if TYPE_CHECKING:
    from tachograph.format import SpoolProcess

PAGE, BLOCK = 4096, 512
_KEEP_SIZE_AND_PUNCH = 1 | 2


def trim(process: SpoolProcess) -> None:
    """Free what no record uses in the segments of a process that has ended. What was written stays as it is.

    That is the rest of the current segment, the one that was prepared for afterwards, and the places of pending blocks
    behind the last that is used. The files keep their size: processes that still have one mapped are
    unaffected.
    """
    assert process.control is not None
    current = process.control.current_segment
    with suppress(OSError):  # it was made into a part, or the file system cannot do it: then it stays as large as it is
        process.segment_path(current + 1).unlink(missing_ok=True)
        _free_tail(process.segment_path(current))
        _free_tail(process.control_path)


def _free_tail(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        size = status.st_size
        if size > MAX_SEGMENT_SIZE:
            return  # it was made to grow: no reader takes it
        if status.st_blocks * BLOCK < size:
            return  # a copy from memory, made when the process had ended: it takes no more than it needs
        used = used_length(os.pread(descriptor, size, 0))
        start = (used + PAGE - 1) // PAGE * PAGE
        if start < size:
            fallocate = ctypes.CDLL(None, use_errno=True).fallocate
            fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
            fallocate(descriptor, _KEEP_SIZE_AND_PUNCH, start, size - start)
    finally:
        os.close(descriptor)
