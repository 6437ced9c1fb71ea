"""Decodes ``co_linetable``, the location table of CPython 3.11 and later, into lines and columns.

The table is a run of entries. The first byte of each has its top bit set, a code in bits 3 to 6 and one less than
the number of code units (2 bytes each) that the entry covers in bits 0 to 2; what follows depends on the code:

===== ==============================================================================================
code  rest of the entry
===== ==============================================================================================
0-9   short form, one byte: start column = code * 8 + bits 4-6, end column = start column + bits 0-3
10-12 one line: line += code - 10; one byte each: start column, end column
13    no columns: line += signed varint
14    long form: line += signed varint; varints: end line - line, start column + 1, end column + 1
15    no location
===== ==============================================================================================

Varints hold 6 bits a byte, least significant first; bit 6 says that another byte follows. Columns count UTF-8 bytes
from 0. The table comes from a recording and is not trusted: garbage ends the decoding where it begins, and no input
takes more than one pass over its bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

CODE_UNIT = 2
"""Bytes of one code unit, the step of instruction offsets."""

MAX_LINE = 2**31 - 1
"""Lines beyond this cannot come from CPython, which counts them in a C int."""

_MAX_VARINT_BYTES = 6  # 36 bits: more than any C int needs


class Location(NamedTuple):
    """Where an instruction comes from: lines count from 1, columns are UTF-8 bytes from 0, None where unknown."""

    line: int | None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


NOWHERE = Location(None)


@dataclass(frozen=True, slots=True)
class LocationTable:
    """The decoded table of one code object."""

    first_line: int | None
    starts: list[int] = field(default_factory=list)
    """Offset in bytes at which each entry begins, ascending."""
    end: int = 0
    """Offset in bytes behind the last entry."""
    locations: list[Location] = field(default_factory=list)

    def locate(self, instruction: int | None) -> Location:
        """The location of the instruction at a byte offset.

        A negative offset stands for a frame that has not begun: the first line. None is an unknown instruction: no
        line. Instructions that the compiler gave no location (the jump that closes a loop may be one) count for the
        nearest one before them that has one, as a tracer would show it; with none before them, for the first line.
        """
        if instruction is None:
            return NOWHERE
        if instruction < 0:
            return Location(self.first_line)
        if instruction >= self.end:
            return NOWHERE
        entry = bisect_right(self.starts, instruction) - 1
        for index in range(entry, max(entry - 16, -1), -1):
            if self.locations[index].line is not None:
                return self.locations[index]
        return Location(self.first_line)


def decode(line_table: bytes | None, first_line: int) -> LocationTable:
    """Decodes the table of a code object whose ``co_firstlineno`` is ``first_line``; None gives an empty table."""
    known_first = first_line if 0 < first_line <= MAX_LINE else None
    if not line_table:
        return LocationTable(known_first)
    starts: list[int] = []
    locations: list[Location] = []
    reader = _Reader(line_table)
    line = first_line
    offset = 0
    while (head := reader.byte()) is not None and head & 0x80:
        code = head >> 3 & 15
        location: Location | None
        if code == 15:
            location = NOWHERE
        else:
            step = reader.line_step(code)
            if step is None:
                break
            line += step
            location = reader.rest(code, line)
            if location is None:
                break
        starts.append(offset)
        locations.append(location)
        offset += ((head & 7) + 1) * CODE_UNIT
    return LocationTable(known_first, starts, offset, locations)


class _Reader:
    """Reads the parts of entries; every method returns None when the table ends too early or holds an absurd number."""

    def __init__(self, table: bytes) -> None:
        self._table = table
        self._at = 0

    def byte(self) -> int | None:
        if self._at >= len(self._table):
            return None
        self._at += 1
        return self._table[self._at - 1]

    def varint(self) -> int | None:
        value = 0
        for index in range(_MAX_VARINT_BYTES):
            byte = self.byte()
            if byte is None or byte & 0x80:
                return None
            value |= (byte & 63) << (6 * index)
            if not byte & 64:
                return value
        return None

    def line_step(self, code: int) -> int | None:
        if code < 10:
            return 0
        if code < 13:
            return code - 10
        value = self.varint()
        if value is None:
            return None
        return -(value >> 1) if value & 1 else value >> 1

    def rest(self, code: int, line: int) -> Location | None:
        shown = line if 0 < line <= MAX_LINE else None
        if code == 13:
            return Location(shown, shown)
        if code == 14:
            lines, start, end = self.varint(), self.varint(), self.varint()
            if lines is None or start is None or end is None:
                return None
            end_line = shown + lines if shown is not None and shown + lines <= MAX_LINE else None
            return Location(shown, end_line, start - 1 if start else None, end - 1 if end else None)
        if code < 10:
            columns = self.byte()
            if columns is None or columns & 0x80:
                return None
            start = code * 8 + (columns >> 4)
            return Location(shown, shown, start, start + (columns & 15))
        start, end = self.byte(), self.byte()
        return None if start is None or end is None else Location(shown, shown, start, end)
