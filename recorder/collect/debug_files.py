"""Debug information of native libraries: its files on this machine, and the sections that hold line tables.

Of a large library's line tables only the units that hold sampled addresses are read.

Sources: DWARF 5, sections 6.1.2 (.debug_aranges), 7.5.1 (headers of units) and 7.5.3 (abbreviations).
"""

from __future__ import annotations

import os
import posixpath
import struct
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tachograph.recorder.collect.regular_files import open_regular

DEBUG_FOLDER = "/usr/lib/debug"
"""Where distributions put what they strip from their libraries."""

MOST_LINE_BYTES = 128 << 20
"""The largest table of lines that is read, uncompressed: a second's work. The interpreter's has 2 MB."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_COMPRESSION = struct.Struct("<IIQQ")
_NOTE = struct.Struct("<III")
_LENGTH = struct.Struct("<I")
_ELF_64_LITTLE = b"\x7fELF\x02\x01"
_NOTHING_HERE = 8
"""Type of sections without contents."""
_COMPRESSED = 0x800
_ZLIB, _ZSTD = 1, 2
_GNU_BUILD_ID = 3
_MOST_SECTIONS = 4096
_MOST_NAMES = 1 << 20
_MOST_NOTE = 4096


@dataclass(frozen=True)
class LineTables:
    """The sections that ``_native.source_lines`` reads."""

    line: bytes
    """.debug_line"""
    line_text: bytes
    """.debug_line_str"""
    whole: bool
    """True if they tell of all addresses of the file."""


class DebugError(Exception):
    """There are tables of lines, and they are damaged, or too large to be read."""


@dataclass(frozen=True)
class _Section:
    flags: int
    kind: int
    offset: int
    size: int


class ElfFile:
    """A 64-bit ELF file, read within its bounds; of any other file it has no sections."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.sections = self._sections()

    def build_id(self) -> str:
        """In hexadecimal; empty if it has none."""
        section = self.sections.get(".note.gnu.build-id")
        note = self._read(section.offset, min(section.size, _MOST_NOTE)) if section is not None else b""
        if len(note) < _NOTE.size:
            return ""
        name, size, kind = _NOTE.unpack_from(note)
        start = _NOTE.size + (name + 3 & ~3)
        return note[start : start + size].hex() if kind == _GNU_BUILD_ID else ""

    def debug_link(self) -> str:
        """The file name of its debug file; empty if it names none."""
        section = self.sections.get(".gnu_debuglink")
        if section is None:
            return ""
        name = self._read(section.offset, min(section.size, _MOST_NOTE)).partition(b"\0")[0]
        return "" if b"/" in name else os.fsdecode(name)

    def contents(self, name: str, most: int) -> bytes:
        """The bytes of a section, uncompressed; none if there is no such section.

        Errors:
            DebugError: they are damaged, compressed in a way that is not known, or more than ``most``.
        """
        section = self.sections.get(name)
        if section is None or section.kind == _NOTHING_HERE:
            return b""
        if section.size > most:
            raise DebugError(f"{name} has {section.size} bytes")
        raw = self._read(section.offset, section.size)
        if len(raw) != section.size:
            raise DebugError(f"{name} ends early")
        return _uncompressed(raw, most) if section.flags & _COMPRESSED else raw

    def size_of_plain(self, name: str) -> int:
        """Bytes of a section of which parts can be read; 0 if there is none, or it is compressed."""
        section = self.sections.get(name)
        if section is None or section.kind == _NOTHING_HERE or section.flags & _COMPRESSED:
            return 0
        return section.size

    def part(self, name: str, offset: int, size: int) -> bytes:
        """At most ``size`` bytes of such a section, from ``offset`` on."""
        section = self.sections[name]
        return self._read(section.offset + offset, max(0, min(size, section.size - offset)))

    def _sections(self) -> dict[str, _Section]:
        header = self._read(0, _HEADER.size)
        if len(header) != _HEADER.size or not header.startswith(_ELF_64_LITTLE):
            return {}
        *_, offset, _flags, _size, _entry, _count, entry, count, names = _HEADER.unpack(header)
        if entry != _SECTION.size or count > _MOST_SECTIONS or names >= count:
            return {}
        table = self._read(offset, entry * count)
        rows = list(_SECTION.iter_unpack(table[: len(table) // _SECTION.size * _SECTION.size]))
        if len(rows) != count:
            return {}
        texts = self._read(rows[names][4], min(rows[names][5], _MOST_NAMES))
        sections: dict[str, _Section] = {}
        for at, kind, flags, _address, start, size, *_rest in rows:
            name = texts[at : at + 64].partition(b"\0")[0].decode("ascii", "replace")
            sections.setdefault(name, _Section(flags, kind, start, size))
        return sections

    def _read(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)


def debug_file_of(path: str) -> str:
    """The file with the debug information of a library: itself, or another; empty if there is none."""
    own = opened(path)
    if own is None:
        return ""
    with own:
        library = ElfFile(own)
        if ".debug_line" in library.sections:
            return path
        build_id, link = library.build_id(), library.debug_link()
    for candidate in _candidates(path, build_id, link):
        file = opened(candidate)
        if file is None:
            continue
        with file:
            # Another version of the library would tell wrong lines.
            if build_id and ElfFile(file).build_id() == build_id:
                return candidate
    return ""


def line_tables(path: str, addresses: Collection[int] | None = None) -> LineTables | None:
    """The tables of lines in a file with debug information; None if it has none.

    With ``addresses`` only the units that may tell of them, where the file says which do.

    Errors:
        DebugError: there are tables, and they cannot be read.
    """
    file = opened(path)
    if file is None:
        return None
    with file:
        debug = ElfFile(file)
        units = None if addresses is None else _needed(debug, addresses)
        line = debug.contents(".debug_line", MOST_LINE_BYTES) if units is None else _units_of_lines(debug, units)
        text = debug.contents(".debug_line_str", MOST_LINE_BYTES)
        return LineTables(line, text, whole=units is None) if line else None


def _needed(file: ElfFile, addresses: Collection[int]) -> list[int] | None:
    if not file.size_of_plain(".debug_line") or not file.size_of_plain(".debug_info"):
        return None
    try:
        return needed_units(file, addresses)
    except DebugError:
        return None


def _units_of_lines(file: ElfFile, offsets: Sequence[int]) -> bytes:
    """Some units of .debug_line, one behind the other."""
    units, size = [], 0
    for offset in offsets:
        (length,) = _LENGTH.unpack(file.part(".debug_line", offset, _LENGTH.size).ljust(_LENGTH.size, b"\0"))
        size += length
        if size > MOST_LINE_BYTES:
            raise DebugError(f"units of .debug_line have more than {MOST_LINE_BYTES} bytes")
        units.append(file.part(".debug_line", offset, _LENGTH.size + length))
    return b"".join(units)


def opened(path: str) -> BinaryIO | None:
    """A regular file; None if there is none at this path, or it may not be read."""
    try:
        file = open_regular(path)
    except (OSError, ValueError):
        return None
    return None if file is None else os.fdopen(file, "rb")


def _candidates(path: str, build_id: str, link: str) -> list[str]:
    """Where gdb looks for a debug file, in its order."""
    paths = []
    if len(build_id) > 2:
        paths.append(f"{DEBUG_FOLDER}/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
    if link:
        folder = posixpath.dirname(str(Path(path).resolve()))
        paths += [f"{folder}/{link}", f"{folder}/.debug/{link}", f"{DEBUG_FOLDER}{folder}/{link}"]
    return [each for each in paths if each != path]


def _uncompressed(raw: bytes, most: int) -> bytes:
    if len(raw) < _COMPRESSION.size:
        raise DebugError("a compressed section ends early")
    kind, _reserved, size, _align = _COMPRESSION.unpack_from(raw)
    if size > most or kind not in (_ZLIB, _ZSTD):
        raise DebugError(f"a section of {size} bytes, compressed by method {kind}")
    body = memoryview(raw)[_COMPRESSION.size :]
    try:
        data = zlib.decompressobj().decompress(body, size) if kind == _ZLIB else _zstd(body, size)
    except (zlib.error, OSError, ValueError) as error:
        raise DebugError(str(error)) from error
    if len(data) != size:
        raise DebugError("a compressed section ends early")
    return data


def _zstd(body: memoryview, size: int) -> bytes:
    import pyarrow as pa

    data: bytes = pa.Codec("zstd").decompress(body, decompressed_size=size, asbytes=True)
    return data


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
        listed = {each.unit for each in ranges}
        if not listed:
            return None
        needed = _holders(ranges, addresses)
        abbreviations = file.contents(".debug_abbrev", _MOST_ABBREVIATIONS)
        tables = set()
        for unit, start in _units(file):
            if unit in needed or unit not in listed:
                table = _line_table(start, abbreviations)
                if table is not None:
                    tables.add(table)
    except (_UnreadableError, struct.error, IndexError):
        return None
    return sorted(tables)


def _holders(ranges: Sequence[_Range], addresses: Collection[int]) -> set[int]:
    """The units with ranges that hold addresses. Ranges do not overlap, but for those of dropped functions, at 0."""
    starts = [each.start for each in ranges]
    units = set()
    for address in addresses:
        at = bisect_right(starts, address) - 1
        if at >= 0 and address < ranges[at].end:
            units.add(ranges[at].unit)
    return units


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
    end = place = len(abbreviations)
    for header in headers:
        # The first one is of this table, if another table has it too.
        at = abbreviations.find(b"\0\0" + header, table, end)
        if at >= 0:
            end, place = at + 2, at + 2 + len(header)
    if place == len(abbreviations):
        raise _UnreadableError
    return place


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
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
