"""Reads files of a recording, which may hold anything: no links, no devices, no endless ones."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import FormatError


def read_regular_file(path: Path, limit: int) -> bytes:
    """The bytes of a file that is no link, pipe or device and not larger than ``limit``.

    Errors:
        OSError: it cannot be read.
        FormatError: it is no regular file, or larger.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{path.name} is not a regular file")
        if status.st_size > limit:
            raise FormatError(f"{path.name} has {status.st_size} bytes, more than the {limit} that it may have")
        return file.read()
