"""Texts of code that no file has, as the program that made the code tells them: cells of a notebook, for example.

They lie in the spool as ``texts.NNNNNN.jsonl``, one text a line (SPOOL.md, "Told texts").
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from ..atomic import read_regular_file
from ..errors import FormatError

TEXTS_NAME = re.compile(r"texts\.(\d{6,10})\.jsonl")
"""Names of files with told texts."""

MAX_TEXT = 4 << 20
"""Characters of the longest text that a writer tells."""

MAX_TEXTS = 64 << 20
"""Bytes of the largest file of told texts that is read, and of all of them that a writer makes."""

MAX_ID = 256
"""Characters of the longest id of a cell."""

MOST_CELL = (1 << 32) - 1


class ToldText(NamedTuple):
    """A text, and of which cell: its number, as in ``In [3]``, and its id in the notebook; None if it is of none."""

    text: str
    cell: int | None = None
    cell_id: str | None = None

    @property
    def data(self) -> bytes:
        """The text as a file would have it."""
        return self.text.encode("utf-8", "surrogatepass")


def encode_texts(texts: dict[str, ToldText]) -> bytes:
    """The content of a file with these texts, by ``co_filename``."""
    rows = ({"path": path, **{key: value for key, value in text._asdict().items() if value is not None}}
            for path, text in texts.items())  # fmt: skip
    return b"".join(json.dumps(row).encode("ascii") + b"\n" for row in rows)


def read_texts(paths: list[Path]) -> tuple[dict[str, ToldText], int]:
    """The texts of these files by ``co_filename``, a later one in the place of an earlier; how many lines are none."""
    texts: dict[str, ToldText] = {}
    torn = 0
    for path in paths:
        try:
            data = read_regular_file(path, MAX_TEXTS)
        except (OSError, FormatError):
            torn += 1
            continue
        for line in data.splitlines():
            entry = _told(line)
            if entry is None:
                torn += 1
            else:
                texts[entry[0]] = entry[1]
    return texts, torn


def _told(line: bytes) -> tuple[str, ToldText] | None:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    path, text, cell, cell_id = (row.get(key) for key in ("path", "text", "cell", "cell_id"))
    if not isinstance(path, str) or not isinstance(text, str):
        return None
    if cell is not None and (type(cell) is not int or not 0 <= cell <= MOST_CELL):
        return None
    if cell_id is not None and (not isinstance(cell_id, str) or len(cell_id) > MAX_ID):
        return None
    return path, ToldText(text, cell, cell_id)
