"""The kernel's clocks, by which the recorded processes write their times, and rest by them.

A library in front of the C library's, such as libfaketime, tells the interpreter other times: then the native module
reads them. Without one it need not be loaded.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def _since_boot() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _clocks() -> tuple[Callable[[], int], Callable[[], int], Callable[[], int]]:
    if os.environ.get("LD_PRELOAD") or os.path.exists("/etc/ld.so.preload"):
        try:
            from tachograph.recorder._native import boot_ns as boot
            from tachograph.recorder._native import monotonic_ns as monotonic
            from tachograph.recorder._native import utc_ns as utc
        except ImportError:
            return time.monotonic_ns, time.time_ns, _since_boot
        return monotonic, utc, boot
    return time.monotonic_ns, time.time_ns, _since_boot


monotonic_ns, utc_ns, boot_ns = _clocks()
"""CLOCK_MONOTONIC in ns, CLOCK_REALTIME in ns since the epoch, and CLOCK_BOOTTIME in ns."""


def rest(seconds: float) -> None:
    """Do nothing for so long. ``time.sleep`` waits for a moment instead, which is years ahead on another clock."""
    import select  # of the command alone: what records a running program reads clocks here, and imports little

    select.poll().poll(seconds * 1000)


class Flag:
    """What one thread raises and others wait for, with a time limit that is the kernel's.

    ``threading.Event`` waits until a moment, as ``time.sleep`` does: on another clock nothing would be copied, read or
    rotated before the end.
    """

    def __init__(self) -> None:
        self._number = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            os.close(self._number)

    def set(self) -> None:
        """Raise it, until ``clear``."""
        os.eventfd_write(self._number, 1)

    def clear(self) -> None:
        """Lower it; of one thread alone."""
        if self.is_set():
            os.eventfd_read(self._number)

    def is_set(self) -> bool:
        """True if it is raised."""
        return self.wait(0)

    def wait(self, seconds: float | None = None) -> bool:
        """Do nothing until it is raised, for so long at most; True if it is."""
        import select

        poll = select.poll()  # of this thread alone
        poll.register(self._number, select.POLLIN)
        return bool(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))
