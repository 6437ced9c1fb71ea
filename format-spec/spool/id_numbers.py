"""Numbers by ids: a dictionary, or an array where there are many ids that lie closely together."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from .arrow_columns import call, numbers_but, numbers_of
from .layout import NONE

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 1 << 14
"""So few are a dictionary, which is faster; of millions it takes fifteen times the room."""

SPARSEST = 4
"""Places of the array for each id, at most."""


class CloseNumbers:
    """A number for each of some ids, most of which are from ``first`` to ``last``. All have 32 bits and are not NONE.

    It has what is needed of a dictionary.
    """

    def __init__(self, first: int, last: int) -> None:
        self._first = first
        self._close = array("I", [NONE]) * (last - first + 1)
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

        numbers = numbers_but(self._close, NONE)
        numbered = call("is_valid", numbers)
        keys = numbers_of(array("I", range(self._first, self._first + len(self._close))))
        close = (call("filter", values, numbered) for values in (keys, numbers))
        ids, numbers_of_ids = (pa.concat_arrays([*both]) for both in zip(close, pairs_of(self._others), strict=True))
        return ids, numbers_of_ids


IdNumbers = dict[int, int] | CloseNumbers
"""What begins empty and gets a number for each id."""


def numbers_for(ids: array[int]) -> IdNumbers:
    """A map that will give numbers to ids like these."""
    if len(ids) < FEW:
        return {}
    first, last = min(ids), max(ids)
    return CloseNumbers(first, last) if last - first < SPARSEST * len(ids) else {}


def first_places(ids: array[int]) -> IdNumbers:
    """Where each id is for the first time."""
    places = numbers_for(ids)
    backwards = range(len(ids) - 1, -1, -1)
    if isinstance(places, dict):
        return dict(zip(reversed(ids), backwards, strict=True))
    for place in backwards:
        places[ids[place]] = place
    return places


def pairs_of(numbers: IdNumbers) -> tuple[pa.Array, pa.Array]:
    """The ids that have a number, and their numbers."""
    if isinstance(numbers, CloseNumbers):
        return numbers.pairs()
    return numbers_of(array("I", numbers)), numbers_of(array("I", numbers.values()))
