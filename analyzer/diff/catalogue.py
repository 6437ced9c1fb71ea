"""The source files of a recording, with their texts: what following a line is based on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from ..recording.opened import Recording
from ..recording.text import printable

MAX_TEXT = 4_000_000
"""Characters of a text beyond which its lines are not followed."""


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One file as a recording holds it; ``sha256`` is None if it was not read."""

    path: str
    sha256: str | None
    _texts: pa.ChunkedArray = field(repr=False)
    _row: int = 0
    _lines: list[list[str] | None] = field(default_factory=list, repr=False)

    @cached_property
    def name(self) -> str:
        """Its path, fit to be shown."""
        return printable(self.path, 4096)

    @property
    def text(self) -> str | None:
        """Its text, None if the recording does not hold it (or it is absurdly long)."""
        text: str | None = self._texts[self._row].as_py()
        return text if text is not None and len(text) <= MAX_TEXT else None

    @property
    def lines(self) -> list[str] | None:
        """Its lines, without their ends, numbered as Python numbers them; None without a text."""
        if not self._lines:
            text = self.text
            # Not splitlines(): Python's own line numbers know only these line ends.
            split = None if text is None else text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            self._lines.append(split)
        return self._lines[0]

    @property
    def has_text(self) -> bool:
        """Whether the recording holds the text."""
        return bool(self._texts[self._row].is_valid)

    def same_text(self, other: SourceFile) -> bool | None:
        """Whether both have the same text, None if nobody knows."""
        if self.sha256 is not None and other.sha256 is not None:
            return self.sha256 == other.sha256
        if self.has_text and other.has_text:
            return self.text == other.text
        return None


def catalogue(recording: Recording) -> list[SourceFile]:
    """The files of a recording, by file id; they stay readable after it is closed."""
    files = recording.table("files")
    paths, digests, texts = (files.column(name) for name in ("path", "sha256", "source"))
    return [
        SourceFile(path, digest, texts, row)
        for row, (path, digest) in enumerate(zip(paths.to_pylist(), digests.to_pylist(), strict=True))
    ]
