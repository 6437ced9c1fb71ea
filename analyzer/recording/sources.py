"""Source files in the recording: their text, the names that reports show, and lines of templates.

No path is opened: only text in the recording is shown. For code that a template engine generated, ``TemplateLines``
leads back to the lines of its template.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from .compat.linetable import NO_LINE
from .text import source_line

FIRST = 1
"""Jinja's line for code lines that come before all of its pairs."""

_PAIRS = re.compile(r"\d{1,9}=\d{1,9}(?:&\d{1,9}=\d{1,9})*", re.ASCII)

_Ids = NDArray[np.int64]


class TemplateLines:
    """The lines of templates by code object, from ``codes.template_lines`` (SPEC.md describes it).

    ``codes`` has the columns file and template_lines. A text that is not as specified is taken for none.
    """

    def __init__(self, codes: pa.Table) -> None:
        texts = codes.column("template_lines").to_pylist()
        self._template_lines = {code: pairs for code, text in enumerate(texts) if (pairs := _pairs(text)) is not None}
        files = codes.column("file")
        self.files = frozenset(files[code].as_py() for code in self._template_lines)
        """The files that such code names."""
        self._lost = np.isin(ids(files), list(self.files))
        self._lost[list(self._template_lines)] = False

    def of(self, code: _Ids, line: _Ids) -> _Ids:
        """The line of the template for each ``line`` of generated text; other code's lines as they are.

        Code of the same file that does not say where its lines come from has none.
        """
        result = line.copy()
        for each, (template, generated) in self._template_lines.items():
            rows = (code == each) & (line != NO_LINE)
            place = np.searchsorted(generated, line[rows], side="right") - 1
            result[rows] = np.where(place >= 0, template[place], FIRST)
        placed = code >= 0
        result[placed] = np.where(self._lost[code[placed]], NO_LINE, result[placed])
        return result


def _pairs(text: str | None) -> tuple[_Ids, _Ids] | None:
    """Lines of the template, and the first generated line of each, ascending."""
    if not text or not _PAIRS.fullmatch(text):
        return None
    numbers = np.array(re.split("[=&]", text), np.int64)
    template, generated = numbers[::2], numbers[1::2]
    return (template, generated) if bool((np.diff(generated) >= 0).all()) else None


PYTHON = frozenset({"", ".py", ".pyw", ".pyi", ".pyx", ".pxd", ".pxi", ".ipynb"})
"""Suffixes of files whose lines are those of the code objects that name them."""


def is_generated(path: str) -> bool:
    """True if code that names this file was generated from it (by a template engine): its lines are not the file's.

    The way back to the template's lines is in ``codes.template_lines``, where the engine tells it.
    """
    return not path.startswith("<") and PurePosixPath(path.replace("\\", "/")).suffix.lower() not in PYTHON


INSTALLED = re.compile(r"[/\\](?:(?:site|dist)-packages|lib(?:64)?[/\\]python3[.\d]*t?)[/\\]", re.IGNORECASE)
"""Matches the paths of installed packages and of the standard library."""


def main_files(files: pa.Table) -> _Ids:
    """For each row of the table ``files`` the row that stands for the file: another one where it has several paths.

    Paths are of one file if they led to the same one on the disk, with the same content. The best of them stands for
    it: one outside of the installed packages, absolute, plain, short.
    """
    rows = np.arange(len(files))
    numbers, digests = (files.column(name).to_pylist() for name in ("disk_file", "sha256"))
    groups: dict[tuple[int, str | None], list[int]] = {}
    for row, (number, digest) in enumerate(zip(numbers, digests, strict=True)):
        if number is not None:
            groups.setdefault((number, digest), []).append(row)
    if len(groups) + numbers.count(None) == len(files):
        return rows
    paths = [path or "" for path in files.column("path").to_pylist()]
    for group in groups.values():
        rows[group] = min(group, key=lambda row: _rank(paths[row]))
    return rows


def _rank(path: str) -> tuple[bool, bool, bool, int, str]:
    """Less for a path that readers expect: the same in all runs, whichever was imported first."""
    parts = path.split("/")
    detours = not {".", ".."}.isdisjoint(parts) or "" in parts[1:]
    return INSTALLED.search(path) is not None, not path.startswith("/"), detours, len(path), path


def with_main_files(codes: pa.Table, files: pa.Table) -> pa.Table:
    """The table ``codes``, in which each code object names the main file of its file (``main_files``)."""
    rows = main_files(files)
    if np.array_equal(rows, np.arange(len(rows))):
        return codes
    place = codes.schema.get_field_index("file")
    column = pa.array(rows[ids(codes.column("file"))], codes.schema.field(place).type)
    return codes.set_column(place, codes.schema.field(place), column)


def shown_paths(files: pa.Table) -> list[str]:
    """The paths of the table ``files``, by row; those of cells are their numbers, ``In [3]``.

    Several texts may have the number of one cell: what a magic of it has run, for example. The first has the plain
    name, and the others are counted: ``In [3] (2)``.
    """
    paths: list[str] = files.column("path").to_pylist()
    taken: Counter[int] = Counter()
    shown = []
    for path, cell in zip(paths, files.column("cell").to_pylist(), strict=True):
        if cell is None:
            shown.append(path)
            continue
        taken[cell] += 1
        shown.append(f"In [{cell}]" + (f" ({taken[cell]})" if taken[cell] > 1 else ""))
    return shown


class Sources:
    """The lines of the recorded files, by file id; ``codes`` tells which lines of templates are known."""

    def __init__(self, files: pa.Table, codes: pa.Table) -> None:
        self._texts = files.column("source")
        paths = [path or "" for path in files.column("path").to_pylist()]
        template_files = TemplateLines(codes).files
        self._generated = [is_generated(path) and file not in template_files for file, path in enumerate(paths)]
        self.generated = frozenset(path for path, without in zip(paths, self._generated, strict=True) if without)
        """Paths of files that code was generated from whose lines are not known."""
        self._lines = lru_cache(maxsize=64)(self._split)

    def line(self, file: int, number: int) -> str | None:
        """Line ``number`` (from 1) of a file, printable and without its end; None if it is not in the recording."""
        if not 0 <= file < len(self._texts) or number < 1 or self._generated[file]:
            return None
        lines = self._lines(file)
        return source_line(lines[number - 1]) if number <= len(lines) else None

    def count(self, file: int) -> int:
        """The number of lines of a file in the recording; 0 if it is not there."""
        return len(self._lines(file)) if 0 <= file < len(self._texts) and not self._generated[file] else 0

    def characters(self, file: int) -> int:
        """The length of a file's text, line ends counted as one each."""
        return sum(map(len, self._lines(file))) + self.count(file) if self.count(file) else 0

    def text(self, file: int) -> str:
        """A file's text as it was recorded, with plain line ends: for parsing, not for showing. Empty if unknown."""
        return "\n".join(self._lines(file)) if self.count(file) else ""

    def _split(self, file: int) -> list[str]:
        text: str | None = self._texts[file].as_py()
        # Not splitlines(): Python's own line numbers know only these line ends.
        return text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if text else []
