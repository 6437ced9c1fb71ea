"""Opening files that a recorded program has named: it may name anything, and may have fewer rights than we.

To open a device or a FIFO is an act already (a watchdog starts, a writer goes on), so the file is looked at first, by a
descriptor that opens nothing, and that very file is opened then.
"""

from __future__ import annotations

import os
import stat

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: str | os.PathLike[str]) -> int | None:
    """A descriptor to read a regular file by; None if the path names none.

    Errors:
        OSError: the file is not there, or may not be read.
        ValueError: the path has a NUL.
    """
    if not hasattr(os, "O_PATH"):  # recordings are recovered on other systems, too
        return _regular(os.open(path, _READ))
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        seen = os.fstat(place)
        if not stat.S_ISREG(seen.st_mode):
            return None
        try:
            return os.open(f"/proc/self/fd/{place}", _READ)
        except FileNotFoundError:  # there is no /proc
            opened = _regular(os.open(path, _READ))
            if opened is not None and not os.path.samestat(seen, os.fstat(opened)):
                os.close(opened)
                return None
            return opened
    finally:
        os.close(place)


def _regular(descriptor: int) -> int | None:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None
