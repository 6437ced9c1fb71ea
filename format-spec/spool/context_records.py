"""The nodes and code objects of a process as the spool has them, of which there may be millions.

They are kept as bytes, and decoded when they are asked for: rows name only some of them.
"""

from __future__ import annotations

from array import array

from .id_numbers import IdNumbers, first_places, numbers_for
from .layout import CODE, NATIVE_STACK, SHAPES, STACK, NativeStack, Stack
from .segment import Segment

_HEADER = 8
_CODE_END = _HEADER + SHAPES[CODE].fixed.size


class NodeRecords:
    """Records of one kind and length by their ids, which come first in them. The first definition of an id counts."""

    def __init__(self, kind: int) -> None:
        self._kind, self._fields = kind, SHAPES[kind].fixed
        self.clear()

    def clear(self) -> None:
        """Let go of all of them."""
        self._records = bytearray()
        self._places: IdNumbers | None = None

    def take(self, segment: Segment) -> None:
        """Take over those of a segment."""
        data, records, own = segment.data, self._records, self._kind
        end = _HEADER + self._fields.size
        for kind, offset, length in segment.others:
            if kind == own and length >= end:
                records += data[offset + _HEADER : offset + end]
        self._places = None

    def fields(self, node: int) -> tuple[int, ...] | None:
        """The fields of an id's record; None if it was lost."""
        if self._places is None:
            self._places = first_places(self._ids())
        place = self._places.get(node)
        return None if place is None else self._fields.unpack_from(self._records, place * self._fields.size)

    def numbers(self) -> IdNumbers:
        """What has no numbers yet, and will have one for many of the ids."""
        return numbers_for(self._ids())

    def _ids(self) -> array[int]:
        ids = array("I")
        ids.frombytes(memoryview(self._records).cast("I")[:: self._fields.size // 4].tobytes())
        return ids


class StackRecords(NodeRecords):
    """The nodes of the calling context tree. Few have a task."""

    def __init__(self) -> None:
        super().__init__(STACK)

    def clear(self) -> None:
        """Let go of all of them."""
        super().clear()
        self._with_task: dict[int, Stack] = {}

    def add(self, record: Stack) -> None:
        """Take over a decoded node."""
        self._with_task.setdefault(record.stack, record)

    def get(self, stack: int) -> Stack | None:
        """The node of an id; None if it was lost."""
        fields = self.fields(stack)
        if fields is None:
            return self._with_task.get(stack)
        _, parent, code, instruction = fields
        return Stack(stack, parent, code, instruction)


class NativeRecords(NodeRecords):
    """The nodes of the tree of native call paths."""

    def __init__(self) -> None:
        super().__init__(NATIVE_STACK)

    def get(self, native_stack: int) -> NativeStack | None:
        """The node of an id; None if it was lost."""
        fields = self.fields(native_stack)
        return None if fields is None else NativeStack(*fields)


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
            self._places = first_places(self._ids)
        place = self._places.get(code)
        return None if place is None else bytes(self._records[self._ends[place] : self._ends[place + 1]])
