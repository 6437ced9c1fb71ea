"""Writes tables of numbers compactly: varints in one block of bytes, to which JSON points.

The layout of a data block, before it is compressed: the length of the JSON text (4 bytes, little-endian), the JSON text
in UTF-8, the bytes. assets/data.js reads it.

A *grid* (rows by spans of time) is written sparsely. For each row: the number of entries, then for each entry the
distance to the previous one's span (the first: to span -1) and the value, as a signed varint (zigzag) of a unit.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
