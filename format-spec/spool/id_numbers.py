"""Numbers by ids, as an array where the ids lie closely together: there may be millions."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from .arrow_columns import numbers_but, numbers_of
from .kernels import call
from .layout import NONE

if TYPE_CHECKING:
    import pyarrow as pa

SPARSEST = 4
"""Places of the array for each id, at most."""


class IdNumbers:
    """A number for each of some ids. Both have 32 bits and are not NONE.

    Most of the ids, about ``count``, are from ``first`` to ``last``; others can be set as well.
    """

    def __init__(self, first: int = 0, last: int = -1, count: int = 0) -> None:
        self._first = first
        self._close = array("I", [NONE]) * (last - first + 1 if last - first < SPARSEST * count else 0)
        self._others: dict[int, int] = {}

    def get(self, key: int) -> int | None:
        """The number of an id; None if it has none."""
        place = key - self._first
        if 0 <= place < len(self._close):
            number = self._close[place]
            return None if number == NONE else number
        return self._others.get(key)

    def __setitem__(self, key: int, number: int) -> None:
        place = key - self._first
        if 0 <= place < len(self._close):
            self._close[place] = number
        else:
            self._others[key] = number

    def pairs(self) -> tuple[pa.Array, pa.Array]:
        """The ids that have a number, and their numbers."""
        import pyarrow as pa

        others = numbers_of(array("I", self._others)), numbers_of(array("I", self._others.values()))
        if not self._close:
            return others
        numbers = numbers_but(self._close, NONE)
        known = call("is_valid", numbers)
        keys = numbers_of(array("I", range(self._first, self._first + len(self._close))))
        close = (call("filter", values, known) for values in (keys, numbers))
        ids, found = (pa.concat_arrays([*both]) for both in zip(close, others, strict=True))
        return ids, found
