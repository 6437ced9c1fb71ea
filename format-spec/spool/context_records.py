"""The nodes and code objects of a process as the spool has them, of which there may be millions.

They are kept as bytes, and decoded when they are asked for: rows name only some of them.
"""

from __future__ import annotations

from array import array

from .id_numbers import IdNumbers
from .layout import CODE, SHAPES, STACK, Stack
from .segment import Segment

_HEADER = 8
_STACK_FIELDS = SHAPES[STACK].fixed
_STACK_END = _HEADER + _STACK_FIELDS.size
_CODE_END = _HEADER + SHAPES[CODE].fixed.size


class StackRecords:
    """The nodes of the calling context tree by their ids. The first definition of an id counts."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Let go of all of them."""
        self._plain = bytearray()
        self._with_task: dict[int, Stack] = {}
        self._places: IdNumbers | None = None

    def take(self, segment: Segment) -> None:
        """Take over the nodes of a segment."""
        data, plain = segment.data, self._plain
        for kind, offset, length in segment.others:
            if kind == STACK and length >= _STACK_END:
                plain += data[offset + _HEADER : offset + _STACK_END]
        self._places = None

    def add(self, record: Stack) -> None:
        """Take over a decoded node."""
        self._with_task.setdefault(record.stack, record)

    def get(self, stack: int) -> Stack | None:
        """The node of an id; None if it was lost."""
        if self._places is None:
            ids = array("I")
            ids.frombytes(memoryview(self._plain).cast("I")[:: _STACK_FIELDS.size // 4].tobytes())
            self._places = _first_places(ids)
        place = self._places.get(stack)
        if place is None:
            return self._with_task.get(stack)
        return Stack(*_STACK_FIELDS.unpack_from(self._plain, place * _STACK_FIELDS.size))


class CodeRecords:
    """The code objects by their ids. The first definition of an id counts."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Let go of all of them."""
        self._records = bytearray()
        self._ids, self._ends = array("I"), array("Q", [0])
        self._places: IdNumbers | None = None

    def take(self, segment: Segment) -> None:
        """Take over the code objects of a segment."""
        data = segment.data
        for kind, offset, length in segment.others:
            if kind == CODE and length >= _CODE_END:
                self._records += data[offset : offset + length]
                self._ids.append(int.from_bytes(data[offset + _HEADER : offset + _HEADER + 4], "little"))
                self._ends.append(len(self._records))
        self._places = None

    def get(self, code: int) -> bytes | None:
        """The record of an id; None if it was lost."""
        if self._places is None:
            self._places = _first_places(self._ids)
        place = self._places.get(code)
        return None if place is None else bytes(self._records[self._ends[place] : self._ends[place + 1]])


def _first_places(ids: array[int]) -> IdNumbers:
    """Where each id is for the first time."""
    places = IdNumbers(min(ids, default=0), max(ids, default=-1), len(ids))
    for place in range(len(ids) - 1, -1, -1):
        places[ids[place]] = place
    return places
