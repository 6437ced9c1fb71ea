"""Reads the data block of a page, as assets/data.js does: a second reader, so that the packing is held to its words."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any


def read_block(page: str) -> tuple[dict[str, Any], bytes]:
    """The JSON and the bytes of a page."""
    match = re.search(r'<script id="data"[^>]*>([A-Za-z0-9+/=]+)</script>', page)
    assert match is not None
    whole = zlib.decompress(base64.b64decode(match[1]))
    length = int.from_bytes(whole[:4], "little")
    return json.loads(whole[4 : 4 + length]), whole[4 + length :]


def varints(data: bytes) -> list[int]:
    """All numbers of some bytes."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value, shift = 0, 0
    return numbers


def unzigzag(value: int) -> int:
    """A signed number."""
    return -(value + 1) // 2 if value % 2 else value // 2


def grid(packed: dict[str, Any], data: bytes) -> list[list[float]]:
    """The rows of a packed grid."""
    numbers = iter(varints(data[packed["at"] : packed["at"] + packed["bytes"]]))
    rows = []
    for _ in range(packed["rows"]):
        row = [0.0] * packed["spans"]
        span = -1
        for _ in range(next(numbers)):
            span += next(numbers)
            row[span] = unzigzag(next(numbers)) * packed["unit"]
        rows.append(row)
    assert next(numbers, None) is None
    return rows
