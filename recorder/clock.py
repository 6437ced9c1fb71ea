"""The kernel's clocks, by which the recorded processes write their times.

A library in front of the C library's, such as libfaketime, tells the interpreter other times: then the native module
reads them. Without one it need not be loaded.
"""

from __future__ import annotations

import os
import time
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def monotonic_ns() -> int:
    """CLOCK_MONOTONIC, ns."""
    return _clocks()[0]()


def utc_ns() -> int:
    """CLOCK_REALTIME, ns since the epoch."""
    return _clocks()[1]()


@cache
def _clocks() -> tuple[Callable[[], int], Callable[[], int]]:
    if os.environ.get("LD_PRELOAD") or os.path.exists("/etc/ld.so.preload"):
        try:
            from tachograph.recorder._native import monotonic_ns, utc_ns
        except ImportError:
            return time.monotonic_ns, time.time_ns
        return monotonic_ns, utc_ns
    return time.monotonic_ns, time.time_ns
