"""Decodes code objects of every CPython version: lines from location tables, and classes of opcodes.

``lines_of`` reads ``co_linetable``, the location tables of CPython 3.11 and later. A table is a run of entries. The
first byte of each has its top bit set, which no other byte has, a code in bits 3 to 6 and one less than the number of
code units (2 bytes each) that the entry covers in bits 0 to 2. The rest depends on the code:

===== ==============================================================================================
code  rest of the entry
===== ==============================================================================================
0-9   short form, one byte: start column = code * 8 + bits 4-6, end column = start column + bits 0-3
10-12 one line: line += code - 10; one byte each: start column, end column
13    no columns: line += signed varint
14    long form: line += signed varint; varints: end line - line, start column + 1, end column + 1
15    no location
===== ==============================================================================================

Varints hold 6 bits a byte, least significant first; bit 6 says that another byte follows. The tables come from a
recording and are not trusted: garbage ends a table where it begins, and no input takes more than one pass over its
bytes.

``classes_of`` tells which opcodes are calls, and which are the interpreter's own work, for each CPython version. The
facts are in the format's ``opcodes.json``, made by ``tools/opcode_classes.py``.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import pieces

CODE_UNIT = 2
"""Bytes of one code unit, the step of instruction offsets."""

MAX_LINE = 2**31 - 1
"""Lines beyond this cannot come from CPython, which counts them in a C int."""

NO_LINE = -1
NO_INSTRUCTION = -(2**31)
"""Stands for an instruction that is not known."""

NOT_BEGUN = -1
"""Stands for the moment before a frame's first instruction."""

_FIRST_LINE = -2
_MAX_VARINT_BYTES = 6  # 36 bits: more than any C int needs
_ONE_LINE, _NO_COLUMNS, _LONG, _NOWHERE = 10, 13, 14, 15
_REST = np.array([1] * _ONE_LINE + [2] * (_NO_COLUMNS - _ONE_LINE) + [0, 0, 0], np.int64)
"""Bytes behind the first, by code; varints come on top."""

_PIECE = 1 << 20
"""Bytes of tables that are decoded together: more memory would not be faster."""

Ids = NDArray[np.int64]


def lines_of(tables: pa.ChunkedArray, first_line: NDArray[np.integer], code: Ids, instruction: Ids) -> Ids:
    """The line of each of many instructions, NO_LINE where it is not known.

    ``tables`` (binary, null where there is none) and ``first_line`` (``co_firstlineno``) have an entry for each code
    object; ``code`` (negative: none) and ``instruction`` (byte offset, or NO_INSTRUCTION) one for each question.

    A negative offset stands for a frame that has not begun: the first line. Instructions that the compiler gave no
    location (the jump that closes a loop may be one) count for the nearest one before them that has one, as a tracer
    would show it; with none before them, for the first line.
    """
    lines = np.full(len(code), NO_LINE, np.int64)
    order = np.argsort(code, kind="stable")
    order = order[np.searchsorted(code[order], 0) :]
    used_codes, begins = np.unique(code[order], return_index=True)
    if not len(used_codes):
        return lines
    offsets, data = pieces(tables, used_codes)
    first = np.where((first_line > 0) & (first_line <= MAX_LINE), first_line, NO_LINE).astype(np.int64)[used_codes]
    start = np.asarray(first_line, np.int64)[used_codes]
    ends = np.append(begins, len(order))
    for low, high in _pieces(offsets):
        rows = order[ends[low] : ends[high]]
        which = np.repeat(np.arange(high - low), np.diff(ends[low : high + 1]))
        decoded = _decode(data[offsets[low] : offsets[high]], offsets[low : high + 1] - offsets[low], start[low:high])
        lines[rows] = decoded.locate(which, instruction[rows], first[low:high])
    return lines


def _pieces(offsets: Ids) -> list[tuple[int, int]]:
    """First and one past the last number of tables that fit together; a table that is too long is alone."""
    pieces, low = [], 0
    while low < len(offsets) - 1:
        high = max(int(np.searchsorted(offsets, offsets[low] + _PIECE, "right")) - 1, low + 1)
        pieces.append((low, high))
        low = high
    return pieces


@dataclass(frozen=True)
class _Entries:
    """The entries of some tables, one after the other, and for each table its ``first`` entry and how many there are.

    ``begin`` is where an entry begins if the code of all tables lay end to end, in bytes; it has one more at its end.
    ``line`` holds the line of the entry, or of the nearest one before it that has a location: NO_LINE if it cannot
    be one, _FIRST_LINE if there is no such entry.
    """

    first: Ids
    begin: Ids
    line: Ids

    def locate(self, table: Ids, instruction: Ids, first_line: Ids) -> Ids:
        """The line of each instruction in its table."""
        base = self.begin[self.first]
        size = np.diff(base)
        inside = (instruction >= 0) & (instruction < size[table])
        lines = np.where((instruction < 0) & (instruction != NO_INSTRUCTION), first_line[table], NO_LINE)
        entry = np.searchsorted(self.begin, base[table[inside]] + instruction[inside], "right") - 1
        line = self.line[entry]
        lines[inside] = np.where(line == _FIRST_LINE, first_line[table[inside]], line)
        return lines


def _decode(data: NDArray[np.uint8], offsets: Ids, first_line: Ids) -> _Entries:
    """Decodes tables that lie one behind the other in ``data``, each from its offset to the next."""
    head = np.flatnonzero(data & 0x80)
    counts = np.diff(np.searchsorted(head, offsets))
    table = np.repeat(np.arange(len(counts)), counts)
    code = (data[head] >> 3 & 15).astype(np.int64)
    step, end = _read(data, head, np.minimum(np.append(head[1:], len(data)), offsets[1:][table]), code)
    # An entry counts if it is whole and begins where the one before it ended, as all of them up to it do.
    begins = np.concatenate(([0], end[:-1]))
    opening = np.cumsum(counts)[counts > 0] - counts[counts > 0]
    begins[opening] = offsets[:-1][counts > 0]
    bad = np.concatenate(([0], np.cumsum((end < 0) | (begins != head))))
    whole = bad[1:] == bad[np.repeat(opening, counts[counts > 0])]
    head, table, code, step = head[whole], table[whole], code[whole], step[whole]
    counts = np.bincount(table, minlength=len(counts))
    first = np.concatenate(([0], np.cumsum(counts)))
    walked = np.concatenate(([0], np.cumsum(step)))
    line = first_line[table] + walked[1:] - walked[first[table]]
    line = np.where((line > 0) & (line <= MAX_LINE), line, NO_LINE)
    nearest = np.maximum.accumulate(np.where(code != _NOWHERE, np.arange(len(line)), -1))
    located = nearest >= first[table]
    size = ((data[head] & 7).astype(np.int64) + 1) * CODE_UNIT
    return _Entries(first, np.concatenate(([0], np.cumsum(size))), np.where(located, line[nearest], _FIRST_LINE))


def _read(data: NDArray[np.uint8], head: Ids, limit: Ids, code: Ids) -> tuple[Ids, Ids]:
    """Lines that each entry goes on, and where it ends: -1 if it does not end at ``limit`` at the latest."""
    step = np.where((code >= _ONE_LINE) & (code < _NO_COLUMNS), code - _ONE_LINE, 0)
    end = head + 1 + _REST[code]
    rows = np.flatnonzero((code == _NO_COLUMNS) | (code == _LONG))
    value, end[rows] = _varints(data, end[rows], limit[rows])
    step[rows] = np.where(value & 1, -(value >> 1), value >> 1)
    rows = np.flatnonzero(code == _LONG)
    for _ in range(3):
        _, end[rows] = _varints(data, end[rows], limit[rows])
    return step, np.where(end <= limit, end, -1)


def _varints(data: NDArray[np.uint8], at: Ids, limit: Ids) -> tuple[Ids, Ids]:
    """The numbers that begin at ``at``, and where they end: behind ``limit`` if they do not end before it."""
    value, end = np.zeros(len(at), np.int64), limit + 1
    rows = np.arange(len(at))
    for index in range(_MAX_VARINT_BYTES):
        rows = rows[at[rows] + index < limit[rows]]
        byte = data[at[rows] + index].astype(np.int64)
        value[rows] |= (byte & 63) << 6 * index
        more = byte & 64 != 0
        end[rows[~more]] = at[rows[~more]] + index + 1
        rows = rows[more]
    return value, end


class OpcodeClass(enum.IntEnum):
    """Kinds of opcode at the leaf of a stack, by the code that runs there."""

    UNKNOWN = 0
    """No opcode was recorded, or the interpreter's version is not known."""
    INTERNAL = 1
    """The interpreter's own work, which never runs foreign code: moving values about, calling Python functions."""
    OTHER = 2
    """Not a call, but it may run foreign code: an operator of an array type, an attribute with a getter in C."""
    ANY_CALL = 3
    """A call that has not been specialised: the callee may be Python's own call machinery or a C function."""
    NATIVE_CALL = 4
    """A call that was specialised for a callable written in C."""


@lru_cache(maxsize=1)
def versions() -> dict[str, dict[str, dict[str, int]]]:
    """Opcode numbers by version ("3.13"), class ("native_call", "internal", "any_call") and name."""
    text = resources.files("tachograph.format").joinpath("opcodes.json").read_text("utf-8")
    loaded: dict[str, dict[str, dict[str, int]]] = json.loads(text)
    return loaded


def classes_of(python_version: str | None) -> NDArray[np.uint8]:
    """The class of each opcode 0..255 in one version ("3.13.0"); all unknown for a version that is not in the file."""
    minor = ".".join((python_version or "").split(".")[:2])
    opcodes = versions().get(minor)
    if opcodes is None:
        return np.full(256, OpcodeClass.UNKNOWN, np.uint8)
    classes = np.full(256, OpcodeClass.OTHER, np.uint8)
    classes[list(opcodes["internal"].values())] = OpcodeClass.INTERNAL
    classes[list(opcodes["any_call"].values())] = OpcodeClass.ANY_CALL
    classes[list(opcodes["native_call"].values())] = OpcodeClass.NATIVE_CALL
    # CACHE: no instruction runs. On 3.11 and 3.12 the interpreter is on its way back from a call of a Python function.
    classes[0] = OpcodeClass.INTERNAL
    return classes
