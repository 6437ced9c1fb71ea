"""What a pass over a long table needs: batches that are made ahead, and its memory given back at the end."""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

import pyarrow as pa

T = TypeVar("T")
END = object()


def prefetched(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The same items; up to ``depth`` of them are made ahead, in a thread: decoding overlaps with what uses them.

    An exception of the source is raised where it belongs.
    """
    from concurrent.futures import ThreadPoolExecutor  # not loaded for short recordings

    source = iter(items)
    # One thread, so that the source is never asked for two items at once, and in order.
    with ThreadPoolExecutor(1, thread_name_prefix="tachograph-prefetch") as thread:
        waiting = deque(thread.submit(next, source, END) for _ in range(depth))
        while (item := waiting.popleft().result()) is not END:
            waiting.append(thread.submit(next, source, END))
            yield item  # type: ignore[misc]  # it is not END


def release_unused() -> None:
    """Gives back what was freed: Arrow and glibc would keep it, for a next large step that does not come."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim is not None:
            trim(0)
