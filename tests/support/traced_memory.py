"""What Python's objects take of memory while something is done, by tracemalloc."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from tachograph.format import Assembled, SpoolDirectory, assemble, load_specification

T = TypeVar("T")


class Traced(NamedTuple, Generic[T]):
    """What was returned, the bytes that were held then, and the most that were."""

    result: T
    held: int
    peak: int


def traced(function: Callable[[], T]) -> Traced[T]:
    """Call a function, and trace what it allocates."""
    tracemalloc.start()
    try:
        return Traced(function(), *tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()


def traced_assembly(spool: Path) -> Traced[Assembled]:
    """The tables of a spool are made for the second time: what is loaded once does not count."""
    spec = load_specification()
    assemble(SpoolDirectory(spool), spec)
    return traced(lambda: assemble(SpoolDirectory(spool), spec))
