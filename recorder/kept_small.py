"""Keeps the recording command small while it goes on: what the tables of a window took goes back to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def kept_small() -> Iterator[None]:
    """Have tables made in here without a growing process.

    Arrow's own allocator keeps what it frees, for each of its threads; the C library's gives back what it is told to.
    """
    with suppress(ImportError):  # then no tables are made either, and who makes them says so
        import pyarrow as pa

        pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        with suppress(AttributeError):  # a C library without it
            ctypes.CDLL(None).malloc_trim(0)
