"""Builds the tables files and codes, column by column: a recording may have a million code objects."""

from __future__ import annotations

import hashlib
import io
import tokenize
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import clean_text
from ..schema import Specification
from .arrow_columns import Pieces, column, numbers_of
from .layout import CODE, NONE, Code
from .line_table import reduce_line_table
from .mentions import rising
from .records import decode_definition
from .told_texts import ToldText

if TYPE_CHECKING:
    import pyarrow as pa

ReadSource = Callable[[str], bytes | None]
_BEHIND_ID = 12
_KEY_BYTES = 16
"""What is behind the id in a record makes a code object equal to another. There may be a million."""

_Source = tuple[str | None, int | None, str | None, int | None, str | None]
"""The columns of ``files`` from ``sha256`` on."""

_UNREAD: _Source = (None, None, None, None, None)


@dataclass(frozen=True)
class SourceTexts:
    """Where the texts of files come from: what the program ``told``, or ``read``; whether they are kept (``store``)."""

    read: ReadSource | None
    store: bool
    told: Mapping[str, ToldText]

    def of(self, path: str) -> _Source:
        """What is known of a file; ``read`` is asked for each that was not told."""
        told = self.told.get(path)
        if told is not None:
            data, text = told.data, clean_text(told.text) if self.store else None
            cell_id = told.cell_id and clean_text(told.cell_id)
            return hashlib.sha256(data).hexdigest(), len(data), text, told.cell, cell_id
        read = self.read(path) if self.read is not None else None
        if read is None:
            return _UNREAD
        text = source_text(read) if self.store else None
        return hashlib.sha256(read).hexdigest(), len(read), text, None, None


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
        for number, seen in zip(range(len(self._files)), instructions, strict=True):
            table = self._line_tables[number]
            line_tables.append(None if table is None else reduce_line_table(table, seen))
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
        for path in self._paths:
            paths.append(clean_text(path).encode())
            sources.append(texts.of(path))
        known = list(zip(*sources, strict=True)) or [()] * len(_UNREAD)
        columns = [column(values, field.type) for values, field in zip(known, list(schema)[2:], strict=True)]
        files = numbers_of(array("I", range(len(paths))))
        return pa.Table.from_arrays([files, paths.column(pa.string()), *columns], schema=schema)


def instructions_by_code(codes: array[int], instructions: array[int], count: int) -> Iterator[Sequence[int]]:
    """Which instructions of each of ``count`` code objects were seen, each once and rising.

    ``codes`` and ``instructions`` belong together; NONE and -1 stand for none.
    """
    both = zip(codes, instructions, strict=True)
    pairs = rising(array("Q", (code << 32 | at for code, at in both if code != NONE and at >= 0)))
    place = 0
    for code in range(count):
        found = []
        while place < len(pairs) and pairs[place] >> 32 == code:
            found.append(pairs[place] & NONE)
            place += 1
        yield found


def source_text(data: bytes) -> str | None:
    """The text of a Python source file, decoded as the language says; None if it cannot be decoded."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return clean_text(data.decode(encoding))
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None
