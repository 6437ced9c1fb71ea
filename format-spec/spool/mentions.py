"""The ids and addresses that rows mention: a recording may have millions of them, each mentioned again and again."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .arrow_columns import numbers_in, numbers_of
from .kernels import call

if TYPE_CHECKING:
    import pyarrow as pa

_FEWEST = 1 << 16
_FEW = 1 << 12
"""Fewer are sorted in Python: calls of Arrow take longer, and there may be thousands of processes."""


class Mentions:
    """Ids or addresses, in no more room than they need; ``code`` is their struct type."""

    __slots__ = ("_distinct", "_noted")

    def __init__(self, code: str) -> None:
        self._noted = array(code)
        self._distinct = 0

    def note(self, values: Iterable[int]) -> None:
        """Add some, which may be there already."""
        self._noted.extend(values)
        if len(self._noted) > 2 * self._distinct + _FEWEST:
            # Each part mentions what lives for long.
            self._noted = distinct(self._noted)
            self._distinct = len(self._noted)

    def clear(self) -> None:
        """Let go of all of them."""
        self._noted = array(self._noted.typecode)
        self._distinct = 0

    @property
    def noted(self) -> array[int]:
        """All of them, some more than once."""
        return self._noted

    def rising(self) -> array[int]:
        """All of them, each once, in rising order."""
        if len(self._noted) < _FEW:
            return array(self._noted.typecode, sorted(set(self._noted)))
        return rising(self._noted)


def distinct(values: array[int]) -> array[int]:
    """The same numbers, each once."""
    return _array_of(call("unique", numbers_of(values)), values.typecode)


def rising(values: array[int]) -> array[int]:
    """The same numbers, each once, in rising order."""
    unique = call("unique", numbers_of(values))
    return _array_of(call("take", unique, call("array_sort_indices", unique)), values.typecode)


def _array_of(numbers: pa.Array, code: str) -> array[int]:
    found = array(code)
    found.frombytes(numbers_in(numbers).cast("B"))
    return found
