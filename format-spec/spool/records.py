"""The records of a spool segment: their headers, and what they hold (SPOOL.md, "Record"; layouts: ``layout``)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .layout import (
    CARRIED,
    GPU_ROWS,
    NONE,
    ROWS_OF_PROCESSES,
    SHAPES,
    THREAD_CARRIED,
    Carried,
    Definition,
    ThreadCarried,
)

_BODY = 8
_WIDTHS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}

ROW_KINDS = {each.name: each for each in ROWS_OF_PROCESSES}
"""The kinds of rows in parts, by the names of their files. (Rows of GPUs are written by the recording command.)"""

TABLE_KINDS = {each.table: each for each in ROW_KINDS.values() if each.table is not None}
"""The kind of the rows of each table that has rows."""

ROW_LENGTHS = {each.kind: each.length for each in (*ROW_KINDS.values(), GPU_ROWS)}
"""Length in bytes of the records that become rows of tables, by kind; all others are definitions."""

LEAST_LENGTHS = {each.kind: each.lengths[0] for each in (*ROW_KINDS.values(), GPU_ROWS)}
"""The same of version 1.0."""


def record_header(offset: int, length: int, kind: int, seq: int) -> int:
    """The header of a record at ``offset`` bytes in segment ``seq``: 16 check bits, its kind and its length."""
    check = (0xA5C3 ^ (length >> 3) ^ (kind * 0x1F35) ^ ((offset >> 3) * 0x2545) ^ (seq * 0x3D4D)) & 0xFFFF
    return check << 48 | kind << 32 | length


SOUND_LENGTHS = {kind: _BODY + shape.fixed.size for kind, shape in SHAPES.items() if not shape.texts}
"""Bytes from which on a definition without texts is whole, by kind."""


def contradicts_itself(kind: int, data: bytes, offset: int, length: int) -> bool:
    """True if a record that is no row of a whole length is of a known kind, and its own length denies what it says."""
    shape = SHAPES.get(kind)
    if shape is None:
        return kind in LEAST_LENGTHS
    end = _BODY + shape.fixed.size
    if length < end:
        return True
    values = shape.fixed.unpack_from(data, offset + _BODY)
    for place, encoding in shape.texts:
        size = values[place]
        if encoding == "bytes" and size == NONE:
            continue
        if isinstance(encoding, int):
            if values[encoding] not in _WIDTHS:
                return True
            size *= values[encoding]
        end += size
    return end > length


def decode_definition(kind: int, data: bytes) -> Definition | None:
    """Decode one whole record (header included); None if it is a row, of an unknown kind, or contradicts itself."""
    shape = SHAPES.get(kind)
    if shape is None or len(data) < _BODY + shape.fixed.size:
        return None
    values = shape.fixed.unpack_from(data, _BODY)
    if shape.array:
        return shape.make(*values[: len(shape.kept) - 1], values[len(shape.kept) - 1 :])  # type: ignore[no-any-return]
    if not shape.texts:
        return shape.make(*values)  # type: ignore[no-any-return]
    at = _BODY + shape.fixed.size
    texts: list[str | bytes | None] = []
    for place, encoding in shape.texts:
        length = values[place]
        if encoding == "bytes" and length == NONE:
            texts.append(None)
            continue
        if isinstance(encoding, int):
            length *= values[encoding]
        if at + length > len(data):
            return None
        text = _text(data[at : at + length], encoding, values)
        if text is None:
            return None
        texts.append(text)
        at += length
    return shape.make(*(values[place] for place in shape.kept), *texts)  # type: ignore[no-any-return]


def carried_body(carried: Carried) -> bytes:
    """A CARRIED record's bytes after its header."""
    return SHAPES[CARRIED].fixed.pack(*carried[:-1], *carried.losses)


def thread_carried_body(carried: ThreadCarried) -> bytes:
    """A THREAD_CARRIED record's bytes after its header."""
    return SHAPES[THREAD_CARRIED].fixed.pack(*carried)


def _text(data: bytes, encoding: str | int, values: Sequence[int]) -> str | bytes | None:
    """A text of a record; None if the width of its characters, which is among its ``values``, is none."""
    if isinstance(encoding, int):
        width = _WIDTHS.get(values[encoding])
        return None if width is None else _characters(data, width)
    if encoding == "bytes":
        return data
    # Thousands of processes name the same files.
    return sys.intern(data.hex() if encoding == "hex" else data.decode("utf-8", "backslashreplace"))


def _characters(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding, "surrogatepass")
    except UnicodeDecodeError:
        return data.decode(encoding, "replace")
