"""Shortens ``co_linetable`` to what a recording can ask of it: the locations of the instructions that were seen.

A program's line tables are larger than all its samples. The entries of instructions that occur in no stack are replaced
by entries without a location, whose runs compress to nothing; the result is a valid table in CPython's own format (the
location table of CPython 3.11 and later, Objects/locations.md in its sources).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator

_UNIT = 2  # bytes of one code unit, the step of instruction offsets
_MOST_UNITS = 8  # of one entry
_FIRST_ONE_LINE, _NO_COLUMNS, _LONG_FORM, _NO_LOCATION = 10, 13, 14, 15
_ONE_LINE_FORMS = range(_FIRST_ONE_LINE, _NO_COLUMNS)
"""Forms of entries; those before the first of these are short ones."""


def reduce_line_table(table: bytes, instructions: Collection[int]) -> bytes:
    """The table with the locations of ``instructions`` (byte offsets) only; as it was if it cannot be understood.

    An instruction without a location of its own keeps the nearest entry before it that has one: readers fall back on
    that.
    """
    wanted = sorted({offset // _UNIT for offset in instructions if offset >= 0})
    try:
        reduced = _reduced(table, wanted)
    except IndexError:
        return table
    return reduced if len(reduced) < len(table) else table


def _reduced(table: bytes, wanted: list[int]) -> bytes:
    """The table up to its last wanted unit. Raises IndexError where it is broken.

    An entry with a location, and those without one that follow it, are kept or left out together.
    """
    out = bytearray()
    place = written = step = 0
    before = None
    for entry in _located(table, wanted[-1] if wanted else -1):
        if place < len(wanted) and wanted[place] < entry[0]:
            if before is not None:
                unit, form, units, _, start, end = before
                _put_blank(out, unit - written)
                _put(out, form, units, table[start:end], step)
                written, step = unit + units, 0
            place = bisect_left(wanted, entry[0], place)
        step += entry[3]
        before = entry
    _put_blank(out, (0 if before is None else before[0]) - written)
    return bytes(out)


def _located(table: bytes, last_unit: int) -> Iterator[tuple[int, int, int, int, int, int]]:
    """The entries with a location up to the one of ``last_unit``, and then a place behind all entries.

    Tuples of its first unit, form, units and line step, and of where in the table the rest of it begins and ends.
    There are tens of thousands of them while the end of a recording is waited for.
    Raises IndexError where the table is broken.
    """
    size = len(table)
    at = unit = 0
    while unit <= last_unit and at < size:
        head = table[at]
        if not head & 0x80:
            raise IndexError("an entry begins with its top bit set")
        form, units = head >> 3 & 15, (head & 7) + 1
        at += 1
        step, start = 0, at
        if form < _FIRST_ONE_LINE:
            at += 1
        elif form < _NO_COLUMNS:
            step = form - _FIRST_ONE_LINE
            at += 2
        elif form != _NO_LOCATION:
            start, value = _varint(table, at)
            step = -(value >> 1) if value & 1 else value >> 1
            at = start
            for _ in range(3 if form == _LONG_FORM else 0):
                at, _value = _varint(table, at)
        if at > size:
            raise IndexError("the last entry is cut off")
        if form != _NO_LOCATION:
            yield unit, form, units, step, start, at
        unit += units
    yield unit, _NO_LOCATION, 0, 0, 0, 0


def _put_blank(out: bytearray, units: int) -> None:
    whole, rest = divmod(units, _MOST_UNITS)
    out += bytes([_head(_NO_LOCATION, _MOST_UNITS)]) * whole
    if rest:
        out.append(_head(_NO_LOCATION, rest))


def _put(out: bytearray, form: int, units: int, rest: bytes, step: int) -> None:
    """Write an entry whose line is ``step`` away from that of the last one written."""
    if form < _FIRST_ONE_LINE and step == 0:
        out.append(_head(form, units))
        out += rest
        return
    if form < _FIRST_ONE_LINE:
        column = form * 8 + (rest[0] >> 4)
        columns = (column, column + (rest[0] & 15))
    elif form < _NO_COLUMNS:
        columns = (rest[0], rest[1])
    else:
        out.append(_head(form, units))
        _put_signed(out, step)
        out += rest
        return
    if 0 <= step < len(_ONE_LINE_FORMS) and max(columns) < 128:
        out.append(_head(_FIRST_ONE_LINE + step, units))
        out += bytes(columns)
        return
    out.append(_head(_LONG_FORM, units))
    _put_signed(out, step)
    for value in (0, columns[0] + 1, columns[1] + 1):
        _put_varint(out, value)


def _head(form: int, units: int) -> int:
    return 0x80 | form << 3 | (units - 1)


def _varint(table: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = table[at]
        at += 1
        value |= (byte & 63) << shift
        shift += 6
        if not byte & 64:
            return at, value


def _put_varint(out: bytearray, value: int) -> None:
    while value >= 64:
        out.append(64 | value & 63)
        value >>= 6
    out.append(value)


def _put_signed(out: bytearray, value: int) -> None:
    _put_varint(out, -value << 1 | 1 if value < 0 else value << 1)
