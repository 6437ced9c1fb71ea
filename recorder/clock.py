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


def _clocks() -> tuple[Callable[[], int], Callable[[], int]]:
    if os.environ.get("LD_PRELOAD") or os.path.exists("/etc/ld.so.preload"):
        try:
            from tachograph.recorder._native import monotonic_ns as monotonic
            from tachograph.recorder._native import utc_ns as utc
        except ImportError:
            return time.monotonic_ns, time.time_ns
        return monotonic, utc
    return time.monotonic_ns, time.time_ns


monotonic_ns, utc_ns = _clocks()
"""CLOCK_MONOTONIC in ns, and CLOCK_REALTIME in ns since the epoch."""


def rest(seconds: float) -> None:
    """Do nothing for so long. ``time.sleep`` waits for a moment instead, which is years ahead on another clock."""
    import select  # of the command alone: what records a running program reads clocks here, and imports little

    select.poll().poll(seconds * 1000)
