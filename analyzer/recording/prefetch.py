"""Reads ahead in a thread of its own: decoding the next batch overlaps with reducing this one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
END = object()


def prefetched(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The same items; up to ``depth`` of them are made ahead. An exception of the source is raised where it belongs."""
    from concurrent.futures import ThreadPoolExecutor  # not loaded for short recordings

    source = iter(items)
    # One thread, so that the source is never asked for two items at once, and in order.
    with ThreadPoolExecutor(1, thread_name_prefix="tachograph-prefetch") as thread:
        waiting = deque(thread.submit(next, source, END) for _ in range(depth))
        while (item := waiting.popleft().result()) is not END:
            waiting.append(thread.submit(next, source, END))
            yield item  # type: ignore[misc]  # it is not END
