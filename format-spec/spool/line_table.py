"""Shortens ``co_linetable`` to what a recording can ask of it: the locations of the instructions that were seen.

A program's line tables are larger than all its samples. The entries of instructions that occur in no stack are replaced
by entries without a location, whose runs compress to nothing; the result is a valid table in CPython's own format (the
location table of CPython 3.11 and later, Objects/locations.md in its sources).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

_UNIT = 2  # bytes of one code unit, the step of instruction offsets
_MOST_UNITS = 8  # of one entry
_SHORT_FORMS = range(10)
_ONE_LINE_FORMS = range(10, 13)
_NO_COLUMNS, _LONG_FORM, _NO_LOCATION = 13, 14, 15


class _Entry(NamedTuple):
    """One entry as it stands in the table: code units, form, line step, and the bytes behind head and line step."""

    units: int
    form: int
    step: int
    rest: bytes


def reduce_line_table(table: bytes, instructions: Collection[int]) -> bytes:
    """The table with the locations of ``instructions`` (byte offsets) only; as it was if it cannot be understood.

    An instruction without a location of its own keeps the nearest entry before it that has one: readers fall back on
    that.
    """
    wanted = {offset // _UNIT for offset in instructions if offset >= 0}
    try:
        entries = _entries(table, max(wanted, default=-1))
    except IndexError:
        return table
    reduced = _encode(entries, _kept(entries, wanted))
    return reduced if len(reduced) < len(table) else table


def _entries(table: bytes, last_unit: int) -> list[_Entry]:
    """The entries up to the one of ``last_unit``. Raises IndexError where the table is broken."""
    entries: list[_Entry] = []
    at = unit = 0
    while unit <= last_unit and at < len(table):
        head = table[at]
        if not head & 0x80:
            raise IndexError("an entry begins with its top bit set")
        form, units = head >> 3 & 15, (head & 7) + 1
        at += 1
        step = 0
        start = at
        if form in _SHORT_FORMS:
            at += 1
        elif form in _ONE_LINE_FORMS:
            step = form - _ONE_LINE_FORMS.start
            at += 2
        elif form != _NO_LOCATION:
            start, value = _varint(table, at)
            step = -(value >> 1) if value & 1 else value >> 1
            at = start
            if form == _LONG_FORM:
                for _ in range(3):
                    at, _value = _varint(table, at)
        if at > len(table):
            raise IndexError("the last entry is cut off")
        entries.append(_Entry(units, form, step, table[start:at]))
        unit += units
    return entries


def _kept(entries: list[_Entry], wanted: set[int]) -> list[bool]:
    kept = [False] * len(entries)
    unit = 0
    located = -1
    for index, entry in enumerate(entries):
        if entry.form != _NO_LOCATION:
            located = index
        if any(at in wanted for at in range(unit, unit + entry.units)):
            kept[index] = True
            if located >= 0:
                kept[located] = True
        unit += entry.units
    return kept


def _encode(entries: list[_Entry], kept: list[bool]) -> bytes:
    out = bytearray()
    blank = step = 0
    for entry, keep in zip(entries, kept, strict=True):
        step += entry.step
        if not keep or entry.form == _NO_LOCATION:
            blank += entry.units
            continue
        _put_blank(out, blank)
        _put(out, entry, step)
        blank = step = 0
    _put_blank(out, blank)
    return bytes(out)


def _put_blank(out: bytearray, units: int) -> None:
    whole, rest = divmod(units, _MOST_UNITS)
    out += bytes([_head(_NO_LOCATION, _MOST_UNITS)]) * whole
    if rest:
        out.append(_head(_NO_LOCATION, rest))


def _put(out: bytearray, entry: _Entry, step: int) -> None:
    """Write an entry whose line is ``step`` away from that of the last one written."""
    if entry.form in _SHORT_FORMS and step == 0:
        out.append(_head(entry.form, entry.units))
        out += entry.rest
        return
    if entry.form in _SHORT_FORMS:
        column = entry.form * 8 + (entry.rest[0] >> 4)
        columns = (column, column + (entry.rest[0] & 15))
    elif entry.form in _ONE_LINE_FORMS:
        columns = (entry.rest[0], entry.rest[1])
    else:
        out.append(_head(entry.form, entry.units))
        _put_signed(out, step)
        out += entry.rest
        return
    if 0 <= step < len(_ONE_LINE_FORMS) and max(columns) < 128:
        out.append(_head(_ONE_LINE_FORMS.start + step, entry.units))
        out += bytes(columns)
        return
    out.append(_head(_LONG_FORM, entry.units))
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
