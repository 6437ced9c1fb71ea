"""Which units of a library's tables of lines are needed: of a large library a few are, and the rest is not read.

Sources: DWARF 5, sections 6.1.2 (.debug_aranges), 7.5.1 (headers of units) and 7.5.3 (abbreviations).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tachograph.recorder.collect.debug_files import ElfFile

_MOST_RANGES = 32 << 20
_MOST_ABBREVIATIONS = 16 << 20
_MOST_UNITS = 20_000
_MOST_ATTRIBUTES = 64
_LONGEST_START = 512
"""Bytes of a unit that are read for the attributes of its first entry."""
_WIDE = 0xFFFFFFFF
_STATEMENTS = 0x10
"""The attribute that says where a unit's table of lines is."""
_OFFSETS = (0x06, 0x17)
"""The forms in which it says so."""
_SIZES = {
    **dict.fromkeys((0x0B, 0x0C, 0x25, 0x29), 1),
    **dict.fromkeys((0x05, 0x26, 0x2A), 2),
    **dict.fromkeys((0x27, 0x2B), 3),
    **dict.fromkeys((0x06, 0x0E, 0x10, 0x13, 0x17, 0x1D, 0x1F, 0x28, 0x2C, 0x1F20, 0x1F21), 4),
    **dict.fromkeys((0x01, 0x07, 0x20), 8),
    **dict.fromkeys((0x19, 0x21), 0),
    0x1E: 16,
}
"""Bytes that a value takes, by its form."""
_UNIT_TAGS = (0x11, 0x3C, 0x41, 0x4A)
_VARIABLE = (0x0D, 0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23)
_TEXT = 0x08
_IMPLICIT = 0x21


class _Range(NamedTuple):
    start: int
    end: int
    unit: int


class _UnreadableError(Exception):
    """Something that is damaged, or of a kind that is not read."""


def needed_units(file: ElfFile, addresses: Collection[int]) -> list[int] | None:
    """Where in .debug_line the units begin that may hold some of these addresses; None if that cannot be told.

    Units that .debug_aranges says nothing of (some compilers write none) are all needed.
    """
    try:
        ranges = sorted(_ranges(file.contents(".debug_aranges", _MOST_RANGES)))
        told = {each.unit for each in ranges}
        if not told:
            return None
        wanted = _holders(ranges, addresses)
        abbreviations = file.contents(".debug_abbrev", _MOST_ABBREVIATIONS)
        found = set()
        for unit, start in _units(file):
            if unit in wanted or unit not in told:
                table = _line_table(start, abbreviations)
                if table is not None:
                    found.add(table)
    except (_UnreadableError, struct.error, IndexError):
        return None
    return sorted(found)


def _holders(ranges: Sequence[_Range], addresses: Collection[int]) -> set[int]:
    """The units with ranges that hold addresses. Ranges do not overlap, but for those of dropped functions, at 0."""
    starts = [each.start for each in ranges]
    found = set()
    for address in addresses:
        at = bisect_right(starts, address) - 1
        if at >= 0 and address < ranges[at].end:
            found.add(ranges[at].unit)
    return found


def _ranges(section: bytes) -> Iterator[_Range]:
    at = 0
    while at < len(section):
        length, version, unit, address_size, segment_size = struct.unpack_from("<IHIBB", section, at)
        if length == _WIDE or version != 2 or address_size != 8 or segment_size != 0:
            raise _UnreadableError
        begin, at = at, at + 4 + length
        # The pairs are aligned to their size, counted from the set's beginning.
        pairs = section[begin + 16 : at]
        for start, size in struct.iter_unpack("<QQ", pairs[: len(pairs) // 16 * 16]):
            if start and size:
                yield _Range(start, start + size, unit)


def _units(file: ElfFile) -> Iterator[tuple[int, bytes]]:
    """Each unit of .debug_info: where it is, and its first bytes."""
    at, count, size = 0, 0, file.size_of_plain(".debug_info")
    while at < size:
        start = file.part(".debug_info", at, _LONGEST_START)
        (length,) = struct.unpack_from("<I", start)
        count += 1
        if length == _WIDE or count > _MOST_UNITS:
            raise _UnreadableError
        yield at, start
        at += 4 + length


def _line_table(unit: bytes, abbreviations: bytes) -> int | None:
    """Where in .debug_line the table of a unit is; None if it has none."""
    (version,) = struct.unpack_from("<H", unit, 4)
    if version == 5:
        kind, _, offset = struct.unpack_from("<BBI", unit, 6)
        at = {0x01: 12, 0x03: 12, 0x02: 24, 0x06: 24, 0x04: 20, 0x05: 20}.get(kind, 0)
    elif 2 <= version <= 4:
        (offset,) = struct.unpack_from("<I", unit, 6)
        at = 11
    else:
        at = 0
    if not at:
        raise _UnreadableError
    code, at = _number(unit, at)
    for attribute, form in _attributes(abbreviations, offset, code):
        if attribute == _STATEMENTS and form in _OFFSETS:
            (table,) = struct.unpack_from("<I", unit, at)
            return int(table)
        at = _behind(unit, at, form)
    return None


def _attributes(abbreviations: bytes, table: int, code: int) -> Iterator[tuple[int, int]]:
    """Attributes and forms of a unit's first entry, whose abbreviation has this code in a table."""
    at = _behind_header(abbreviations, table, code)
    for _ in range(_MOST_ATTRIBUTES):
        attribute, at = _number(abbreviations, at)
        form, at = _number(abbreviations, at)
        if form == _IMPLICIT:
            _, at = _number(abbreviations, at)
        if attribute == form == 0:
            return
        yield attribute, form


def _behind_header(abbreviations: bytes, table: int, code: int) -> int:
    """Where the attributes of an abbreviation of a unit begin.

    A table may have hundreds before it, so it is searched for: two zeros are the end of the one before, and nothing
    else, and no two of a table have one code.
    """
    headers = [_encoded(code) + bytes((tag, children)) for tag in _UNIT_TAGS for children in (1, 0)]
    for header in headers:
        if abbreviations.startswith(header, table):
            return table + len(header)
    end = found = len(abbreviations)
    for header in headers:
        # The first one is of this table, if another table has it too.
        at = abbreviations.find(b"\0\0" + header, table, end)
        if at >= 0:
            end, found = at + 2, at + 2 + len(header)
    if found == len(abbreviations):
        raise _UnreadableError
    return found


def _behind(unit: bytes, at: int, form: int) -> int:
    """Where the next value begins."""
    size = _SIZES.get(form)
    if size is not None:
        return at + size
    if form == _TEXT:
        return unit.index(b"\0", at) + 1 if b"\0" in unit[at:] else len(unit)
    if form in _VARIABLE:
        return _number(unit, at)[1]
    raise _UnreadableError


def _number(section: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as if it had no sign, and where the next one begins."""
    value = shift = 0
    while True:
        byte = section[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _UnreadableError


def _encoded(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))
