"""The way back from code that a template engine generated to the lines of its template."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from .compat.linetable import NO_LINE

FIRST = 1
"""What Jinja says of lines that come before all of its pairs."""

_PAIRS = re.compile(r"\d{1,9}=\d{1,9}(?:&\d{1,9}=\d{1,9})*", re.ASCII)

_Ids = NDArray[np.int64]


class TemplateLines:
    """The lines of templates by code object, from ``codes.template_lines`` (SPEC.md says what it holds).

    ``codes`` has the columns file and template_lines. A text that is not as specified is taken for none.
    """

    def __init__(self, codes: pa.Table) -> None:
        texts = codes.column("template_lines").to_pylist()
        self._known = {code: pairs for code, text in enumerate(texts) if (pairs := _pairs(text)) is not None}
        files = codes.column("file")
        self.files = frozenset(files[code].as_py() for code in self._known)
        """The files that such code names."""
        self._lost = np.isin(ids(files), list(self.files))
        self._lost[list(self._known)] = False

    def of(self, code: _Ids, line: _Ids) -> _Ids:
        """The line of the template for each ``line`` of generated text; other code's lines as they are.

        Code of the same file that does not say where its lines come from has none.
        """
        result = line.copy()
        for each, (template, generated) in self._known.items():
            here = (code == each) & (line != NO_LINE)
            place = np.searchsorted(generated, line[here], side="right") - 1
            result[here] = np.where(place >= 0, template[place], FIRST)
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
