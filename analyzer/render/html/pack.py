"""Compact data blocks for pages: JSON that points to varints in one block of bytes; and a choice of source text.

The layout of a data block, before it is compressed: the length of the JSON text (4 bytes, little-endian), the JSON text
in UTF-8, the bytes. assets/data.js reads it.

A *grid* (rows by spans of time) is written sparsely. For each row: the number of entries, then for each entry the
distance to the previous one's span (the first: to span -1) and the value, as a signed varint (zigzag) of a unit.

The source text in a report is whole files while there is room, else the surroundings of the lines that are shown.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...recording.sources import Sources

STEPS = 1 << 22
"""The largest row of a grid is this many units: sums are exact to a quarter of a millionth of it."""


class Names:
    """Distinct texts by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: object) -> int:
        """The number of a text, -1 for none."""
        if not isinstance(text, str):
            return -1
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]

    def numbers(self, texts: Iterable[object]) -> list[int]:
        """The numbers of some texts."""
        return [self.number(text) for text in texts]


class Packer:
    """Collects the bytes of one data block."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def grid(self, values: NDArray[np.floating[Any]], unit: float = 1.0) -> dict[str, Any]:
        """Adds a grid, and returns what JSON says of it; ``unit`` is the smallest that makes sense."""
        numbers = np.asarray(values, np.float64)
        rows, spans = numbers.shape
        running = np.cumsum(numbers, axis=1)
        largest = float(np.abs(running).max(initial=0.0))
        unit = max(unit, largest / STEPS)
        # Rounding the running sums, not the values, keeps the sum over any window exact to one unit.
        whole = np.rint(running / unit).astype(np.int64)
        steps = np.diff(whole, axis=1, prepend=0)
        row, span = np.nonzero(steps)
        counts = np.bincount(row, minlength=rows)
        first = np.concatenate(([True], np.diff(row) != 0)) if len(row) else np.zeros(0, np.bool_)
        distance = np.where(first, span + 1, np.diff(span, prepend=0))
        stream = np.empty(rows + 2 * len(row), np.int64)
        place = np.arange(len(row)) * 2 + row + 1
        stream[place] = distance
        stream[place + 1] = _zigzag(steps[row, span])
        stream[np.arange(rows) + 2 * (np.cumsum(counts) - counts)] = counts
        return {**self._add(varints(stream)), "rows": rows, "spans": spans, "unit": unit}

    def ids(self, values: NDArray[np.integer[Any]]) -> dict[str, Any]:
        """Adds whole numbers, and returns what JSON says of them; they are written as differences."""
        numbers = np.asarray(values, np.int64)
        return {**self._add(varints(_zigzag(np.diff(numbers, prepend=0)))), "count": len(numbers)}

    def block(self, document: Mapping[str, Any]) -> str:
        """The whole data block, compressed (zlib), in base64."""
        text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        whole = len(text).to_bytes(4, "little") + text + b"".join(self._parts)
        return base64.b64encode(zlib.compress(whole, 9)).decode("ascii")

    def _add(self, data: bytes) -> dict[str, int]:
        at = self._length
        self._parts.append(data)
        self._length += len(data)
        return {"at": at, "bytes": len(data)}


def varints(values: NDArray[np.int64]) -> bytes:
    """Numbers (not negative) in groups of seven bits, the lowest first; all but the last have the top bit set."""
    left = values.astype(np.uint64)
    lengths = np.ones(len(left), np.int64)
    for bits in range(7, 64, 7):
        lengths += left >= np.uint64(1 << bits)
    ends = np.cumsum(lengths)
    result = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    starts = ends - lengths
    for group in range(int(lengths.max(initial=0))):
        mine = lengths > group
        more = np.where(lengths[mine] > group + 1, 0x80, 0).astype(np.uint64)
        result[starts[mine] + group] = ((left[mine] & np.uint64(0x7F)) | more).astype(np.uint8)
        left >>= np.uint64(7)
    return result.tobytes()


def number(value: Any, digits: int = 6) -> float | int | None:
    """A number for JSON in a few digits; None for what is unknown."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, (int, np.integer)):
        return int(value)
    rounded = float(f"{float(value):.{digits}g}")
    if not math.isfinite(rounded):
        return None
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1 << 53 else rounded


def _zigzag(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return (values << 1) ^ (values >> 63)


WHOLE_BUDGET = 900_000
"""Characters of files that are shown whole, in the order of their time."""

CONTEXT_BUDGET = 500_000
"""Characters of the surroundings of lines in other files."""

WHOLE_FILE = 250_000
"""A file with more characters is never shown whole."""

WHOLE_LINES = 8_000
"""Nor is one with more lines."""

CONTEXT = 7
"""Lines before and after a line that are shown of files that are not shown whole."""

Piece = tuple[int, list[str]]
"""Number of the first line, and lines."""


@dataclass(frozen=True)
class Texts:
    """Pieces of source text (number of the first line, lines) by file id, and numbers of files shown in part or not."""

    pieces: dict[int, list[Piece]]
    whole: int
    cut: int
    """Files of which only surroundings are there."""
    missing: int
    """Files of which there was no room for anything."""


def choose_texts(lines: pd.DataFrame, sources: Sources, scale: float = 1.0) -> Texts:
    """The text for the rows of ``Profile.lines``, whose first rows matter most; ``scale`` shrinks the room."""
    whole_left, context_left = WHOLE_BUDGET * scale, CONTEXT_BUDGET * scale
    located = lines[(lines["file_id"] >= 0) & lines["line"].notna()]
    pieces: dict[int, list[Piece]] = {}
    whole = cut = missing = 0
    for file, numbers in located.groupby("file_id", sort=False)["line"]:
        count = sources.count(int(file))
        if not count:
            continue
        if count <= WHOLE_LINES and sources.characters(int(file)) <= min(whole_left, WHOLE_FILE):
            text = _piece(sources, int(file), range(1, count + 1))
            whole_left -= _size([text])
            pieces[int(file)] = [text]
            whole += 1
            continue
        some = [_piece(sources, int(file), run) for run in _runs([int(number) for number in numbers], count)]
        size = _size(some)
        if size > context_left:
            missing += 1
            continue
        context_left -= size
        pieces[int(file)] = some
        cut += 1
    return Texts(pieces, whole, cut, missing)


def joined_texts(first: Texts, more: Iterable[Texts]) -> Texts:
    """Texts of several answers: those of the first, and of the others the files that are not among them yet."""
    pieces = dict(first.pieces)
    for texts in more:
        pieces.update({file: text for file, text in texts.pieces.items() if file not in pieces})
    return replace(first, pieces=pieces)


def _piece(sources: Sources, file: int, numbers: range) -> Piece:
    return numbers.start, [sources.line(file, number) or "" for number in numbers]


def _size(pieces: list[Piece]) -> int:
    return sum(len(line) + 1 for _, lines in pieces for line in lines)


def _runs(numbers: list[int], count: int) -> list[range]:
    """The surroundings of some lines of a file of ``count`` lines, as runs that do not touch."""
    runs: list[range] = []
    for number in sorted(number for number in numbers if number <= count):
        first, last = max(1, number - CONTEXT), min(count, number + CONTEXT)
        if runs and first <= runs[-1].stop:
            runs[-1] = range(runs[-1].start, last + 1)
        else:
            runs.append(range(first, last + 1))
    return runs
