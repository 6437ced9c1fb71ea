"""Texts of code that no file has, told to the recording: cells of a notebook, lines that were typed.

Python's own ``linecache`` has them, for tracebacks. A session that makes them puts them there before they run.
"""

from __future__ import annotations

import os
import sys

from tachograph.format.atomic import write_bytes
from tachograph.recorder.collect.held_folder import HeldFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from tachograph.format.spool.told_texts import ToldText

    Cells: TypeAlias = Callable[[str], tuple[int | None, str | None]]
    """The number and the id of the cell that a ``co_filename`` stands for; None for what it is not or has not."""


class TextTeller:
    """Writes texts into the spool in ``directory``, each once; ``cells`` knows which of them are cells."""

    def __init__(self, directory: str, cells: Cells | None = None) -> None:
        self._directory = directory
        with HeldFolder.open(directory) as spool:
            self._identity = spool.identity
        self._cells = cells
        self._told: dict[str, ToldText] = {}
        self._files = 0
        self._used = 0

    def tell(self) -> None:
        """Write what was not written before, or has changed; the newest first where there is not room for all.

        Raises OSError if it cannot be written.
        """
        texts = list(texts_without_files())
        if not texts:
            return
        from tachograph.format.spool.told_texts import MAX_TEXT, MAX_TEXTS, encode_texts  # most programs have none

        found: dict[str, ToldText] = {}
        for path, text in reversed(texts):
            told = self._text(path, text)
            if self._told.get(path) != told and len(text) <= min(MAX_TEXT, MAX_TEXTS - self._used):
                found[path] = told
                self._used += len(text)
        data = encode_texts(found)
        if not data or len(data) > MAX_TEXTS:
            return
        name = f"texts.{self._files:06}.jsonl"
        # No descriptor is kept open in the program; that it is the same folder is what counts.
        with HeldFolder.open(self._directory, self._identity) as spool:
            write_bytes(os.path.join(spool.here, name), data)
        self._files += 1
        self._told |= found

    def _text(self, path: str, text: str) -> ToldText:
        from tachograph.format.spool.told_texts import MAX_ID, MOST_CELL, ToldText

        cell, cell_id = (None, None) if self._cells is None else self._cells(path)
        cell = cell if cell is not None and 0 <= cell <= MOST_CELL else None
        return ToldText(text, cell, cell_id if cell_id is not None and len(cell_id) <= MAX_ID else None)


def texts_without_files() -> Iterator[tuple[str, str]]:
    """``co_filename`` and text of the code that no file has, the oldest first."""
    linecache = sys.modules.get("linecache")
    for path, entry in list(linecache.cache.items()) if linecache is not None else ():
        # Size, time of the file, lines, full name; the time is None where there is no file.
        if len(entry) == 4 and entry[1] is None and isinstance(path, str):
            yield path, "".join(entry[2])
