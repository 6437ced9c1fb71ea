"""Debug information of native libraries: where it is on this machine, and the sections of it that tell lines."""

from __future__ import annotations

import os
import posixpath
import stat
import struct
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tachograph.recorder.collect.debug_units import needed_units

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
    """What ``_native.source_lines`` reads."""

    line: bytes
    """.debug_line"""
    line_text: bytes
    """.debug_line_str"""
    whole: bool
    """Whether they tell of all addresses of the file."""


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
        """What there is of ``size`` bytes of such a section, from ``offset`` on."""
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
        found: dict[str, _Section] = {}
        for at, kind, flags, _address, start, size, *_rest in rows:
            name = texts[at : at + 64].partition(b"\0")[0].decode("ascii", "replace")
            found.setdefault(name, _Section(flags, kind, start, size))
        return found

    def _read(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)


def debug_file_of(path: str) -> str:
    """The file with the debug information of a library: itself, or another; empty if there is none."""
    own = open_regular(path)
    if own is None:
        return ""
    with own:
        library = ElfFile(own)
        if ".debug_line" in library.sections:
            return path
        build_id, link = library.build_id(), library.debug_link()
    for candidate in _candidates(path, build_id, link):
        file = open_regular(candidate)
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
    file = open_regular(path)
    if file is None:
        return None
    with file:
        debug = ElfFile(file)
        units = None if addresses is None else _needed(debug, addresses)
        line = debug.contents(".debug_line", MOST_LINE_BYTES) if units is None else _units(debug, units)
        text = debug.contents(".debug_line_str", MOST_LINE_BYTES)
        return LineTables(line, text, whole=units is None) if line else None


def _needed(file: ElfFile, addresses: Collection[int]) -> list[int] | None:
    if not file.size_of_plain(".debug_line") or not file.size_of_plain(".debug_info"):
        return None
    try:
        return needed_units(file, addresses)
    except DebugError:
        return None


def _units(file: ElfFile, offsets: Sequence[int]) -> bytes:
    """Some units of .debug_line, one behind the other."""
    found, size = [], 0
    for offset in offsets:
        (length,) = _LENGTH.unpack(file.part(".debug_line", offset, _LENGTH.size).ljust(_LENGTH.size, b"\0"))
        size += length
        if size > MOST_LINE_BYTES:
            raise DebugError(f"units of .debug_line have more than {MOST_LINE_BYTES} bytes")
        found.append(file.part(".debug_line", offset, _LENGTH.size + length))
    return b"".join(found)


def open_regular(path: str) -> BinaryIO | None:
    """A regular file; None if there is none at this path, or it may not be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return None
    return os.fdopen(file, "rb")


def _candidates(path: str, build_id: str, link: str) -> list[str]:
    """Where gdb looks for a debug file, in its order."""
    found = []
    if len(build_id) > 2:
        found.append(f"{DEBUG_FOLDER}/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
    if link:
        folder = posixpath.dirname(str(Path(path).resolve()))
        found += [f"{folder}/{link}", f"{folder}/.debug/{link}", f"{DEBUG_FOLDER}{folder}/{link}"]
    return [each for each in found if each != path]


def _uncompressed(raw: bytes, most: int) -> bytes:
    if len(raw) < _COMPRESSION.size:
        raise DebugError("a compressed section ends early")
    kind, _reserved, size, _align = _COMPRESSION.unpack_from(raw)
    if size > most or kind not in (_ZLIB, _ZSTD):
        raise DebugError(f"a section of {size} bytes, compressed by method {kind}")
    body = memoryview(raw)[_COMPRESSION.size :]
    try:
        found = zlib.decompressobj().decompress(body, size) if kind == _ZLIB else _zstd(body, size)
    except (zlib.error, OSError, ValueError) as error:
        raise DebugError(str(error)) from error
    if len(found) != size:
        raise DebugError("a compressed section ends early")
    return found


def _zstd(body: memoryview, size: int) -> bytes:
    import pyarrow as pa

    found: bytes = pa.Codec("zstd").decompress(body, decompressed_size=size, asbytes=True)
    return found
