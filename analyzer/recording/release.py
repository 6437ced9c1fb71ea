"""Gives memory back to the system after a large step."""

from __future__ import annotations

import ctypes
import sys

import pyarrow as pa


def release_unused() -> None:
    """Gives back what was freed: Arrow and glibc would keep it, for a next large step that does not come."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim is not None:
            trim(0)
