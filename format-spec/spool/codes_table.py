"""Builds the tables files and codes, column by column: a recording may have a million code objects.

A code object's line table (``co_linetable``) is shortened to the locations of the instructions that were sampled: a
program's line tables are larger than all its samples. The entries of other instructions are replaced by entries without
a location, whose runs compress to nothing; the result is a valid table in CPython's own format (the location table of
CPython 3.11 and later, Objects/locations.md in its sources).
"""

from __future__ import annotations

import hashlib
import io
import tokenize
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..errors import clean_text
from ..schema import Specification
from .arrow_columns import Pieces, column, numbers_of
from .layout import CODE, NONE, Code
from .process_definitions import rising
from .records import decode_definition
from .told_texts import ToldText

if TYPE_CHECKING:
    import pyarrow as pa


class CodeLines(NamedTuple):
    """A code object of a file, with its whole line table; ``is_generated`` if its lines are those of a template."""

    qualname: str
    first_line: int
    line_table: bytes | None
    is_generated: bool


ReadSource = Callable[[str, Sequence[CodeLines]], bytes | None]
"""Reads the file of a path; the code objects that name it can tell whether it is the one that ran."""

DiskFile = tuple[int | str, ...]
"""Tells files on the disk apart: equal for paths that led to one file."""

IdentifyFile = Callable[[str], DiskFile | None]
"""Gives the file on the disk that was read for a path; None if none was, or it is not known."""
_BEHIND_ID = 12
_KEY_BYTES = 16
"""What is behind the id in a record makes a code object equal to another. There may be a million."""

_Source = tuple[str | None, int | None, str | None, int | None, str | None]
"""The columns of ``files`` from ``sha256`` to ``cell_id``."""

_UNREAD: _Source = (None, None, None, None, None)


@dataclass(frozen=True)
class SourceTexts:
    """Texts of files: those that the program has ``given``, else those that ``read`` reads; kept if ``store``.

    ``identify`` is asked about files that were read.
    """

    read: ReadSource | None
    store: bool
    given: Mapping[str, ToldText]
    identify: IdentifyFile | None = None

    def of(self, path: str, codes: Sequence[CodeLines]) -> _Source:
        """The columns of a file's text; ``read`` is called for each file that the program has not given."""
        given = self.given.get(path)
        if given is not None:
            data, text = given.data, clean_text(given.text) if self.store else None
            cell_id = given.cell_id and clean_text(given.cell_id)
            return hashlib.sha256(data).hexdigest(), len(data), text, given.cell, cell_id
        read = self.read(path, codes) if self.read is not None else None
        if read is None:
            return _UNREAD
        text = source_text(read) if self.store else None
        return hashlib.sha256(read).hexdigest(), len(read), text, None, None

    def disk_file(self, path: str) -> DiskFile | None:
        """The file on the disk whose text ``of`` has returned; None if it is not known."""
        return self.identify(path) if self.identify is not None and path not in self.given else None


class CodesTable:
    """The code objects of a recording and their files; equal ones become one."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._paths: dict[str, int] = {}
        self._files, self._first_lines, self._flags = array("I"), array("i"), array("i")
        self._qualnames, self._line_tables, self._template_lines = Pieces(), Pieces(), Pieces()

    def __len__(self) -> int:
        return len(self._files)

    def number(self, record: bytes) -> int | None:
        """The number of the code object of a record, which it gets if it is new; None if the record makes no sense."""
        key = hashlib.blake2b(record[_BEHIND_ID:], digest_size=_KEY_BYTES).digest()
        number = self._numbers.get(key)
        if number is not None:
            return number
        code = decode_definition(CODE, record)
        if not isinstance(code, Code):
            return None
        number = self._numbers[key] = len(self._files)
        self._files.append(self._paths.setdefault(code.filename, len(self._paths)))
        self._first_lines.append(code.first_line)
        self._flags.append(code.flags - (code.flags >> 31 << 32))
        self._qualnames.append(clean_text(code.qualname).encode())
        self._line_tables.append(code.line_table)
        self._template_lines.append(clean_text(code.template_lines).encode() or None)
        return number

    def tables(
        self,
        spec: Specification,
        texts: SourceTexts,
        instructions: Iterator[Sequence[int]],
    ) -> dict[str, pa.Table]:
        """The two tables; ``instructions`` are those that were seen, of one code object after the other."""
        import pyarrow as pa

        schema = spec.tables["codes"].schema
        line_tables = Pieces()
        for number, sampled in zip(range(len(self._files)), instructions, strict=True):
            table = self._line_tables[number]
            line_tables.append(None if table is None else reduce_line_table(table, sampled))
        codes = {
            "code": numbers_of(array("I", range(len(self._files)))),
            "file": numbers_of(self._files),
            "qualname": self._qualnames.column(pa.string()),
            "first_line": numbers_of(self._first_lines),
            "flags": numbers_of(self._flags),
            "line_table": line_tables.column(pa.binary()),
            "template_lines": self._template_lines.column(pa.string()),
        }
        return {
            "files": self._files_table(spec, texts),
            "codes": pa.Table.from_arrays([codes[name] for name in schema.names], schema=schema),
        }

    def _files_table(self, spec: Specification, texts: SourceTexts) -> pa.Table:
        import pyarrow as pa

        schema = spec.tables["files"].schema
        paths = Pieces()
        sources: list[_Source] = []
        disk_files: list[int | None] = []
        numbers: dict[DiskFile, int] = {}
        codes: list[list[int]] = [[] for _ in self._paths]
        for code, file in enumerate(self._files):
            codes[file].append(code)
        for path, file in self._paths.items():
            paths.append(clean_text(path).encode())
            source = texts.of(path, [self._lines_of(code) for code in codes[file]])
            sources.append(source)
            identity = None if source is _UNREAD else texts.disk_file(path)
            disk_files.append(None if identity is None else numbers.setdefault(identity, len(numbers)))
        values_by_column = [*(list(zip(*sources, strict=True)) or [()] * len(_UNREAD)), disk_files]
        columns = [column(values, field.type) for values, field in zip(values_by_column, list(schema)[2:], strict=True)]
        files = numbers_of(array("I", range(len(paths))))
        return pa.Table.from_arrays([files, paths.column(pa.string()), *columns], schema=schema)

    def _lines_of(self, code: int) -> CodeLines:
        qualname = self._qualnames[code]
        is_generated = self._template_lines[code] is not None
        return CodeLines((qualname or b"").decode(), self._first_lines[code], self._line_tables[code], is_generated)


def instructions_by_code(codes: array[int], instructions: array[int], count: int) -> Iterator[Sequence[int]]:
    """The sampled instructions of each of ``count`` code objects, each once and rising.

    ``codes`` and ``instructions`` belong together; NONE and -1 stand for none.
    """
    both = zip(codes, instructions, strict=True)
    pairs = rising(array("Q", (code << 32 | at for code, at in both if code != NONE and at >= 0)))
    place = 0
    for code in range(count):
        of_code = []
        while place < len(pairs) and pairs[place] >> 32 == code:
            of_code.append(pairs[place] & NONE)
            place += 1
        yield of_code


def source_text(data: bytes) -> str | None:
    """The text of a Python source file, decoded as the language says; None if it cannot be decoded."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return clean_text(data.decode(encoding))
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None


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
    units = sorted({offset // _UNIT for offset in instructions if offset >= 0})
    try:
        reduced = _reduced(table, units)
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


def line_steps(table: bytes) -> list[int]:
    """The lines of a table one after the other, from the first line of its code object; equal neighbours once.

    Empty if it cannot be understood.
    """
    lines: list[int] = []
    line = 0
    try:
        for entry in _located(table, len(table) * _MOST_UNITS):
            line += entry[3]
            if not lines or lines[-1] != line:
                lines.append(line)
    except IndexError:
        return []
    return lines


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
