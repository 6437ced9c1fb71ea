"""How ``%%tachograph`` and ``%tachograph STATEMENT`` become Python.

The code of a cell stays what it would be without them: it is compiled and run by IPython itself, under the numbers of
its own lines, with ``await``, its own tracebacks and its own result. Only the line of the magic becomes another one: a
call that begins the recording, which the end of the cell ends, or a ``with`` around the statement.
"""

from __future__ import annotations

import re
import tokenize
from typing import Any

from IPython.core.inputtransformer2 import TokenTransformBase, assemble_continued_line, find_end_of_continued_line

from tachograph.notebook.words import WrongWordsError, read, verb_of

ATTRIBUTE = "tachograph"
"""Name of the attribute of the shell that the lines call."""

_CELL = re.compile(r"%%tachograph(?:[ \t]+(.*))?$")
_LINE = re.compile(r"%tachograph[ \t]+(.*)$", re.DOTALL)


def transform_cell(lines: list[str]) -> list[str]:
    """The lines of a cell; the first that is not empty, if it is ``%%tachograph``, begins the recording."""
    for number, line in enumerate(lines):
        if line.strip():
            found = _CELL.match(line.rstrip())
            # Asked for help in the way of IPython: `%%tachograph?`
            if found is None:
                return lines
            return [*lines[:number], f"get_ipython().{ATTRIBUTE}.cell({found[1] or ''!r})\n", *lines[number + 1 :]]
    return lines


class StatementTransform(TokenTransformBase):  # type: ignore[misc]  # IPython's types are not read
    """``%tachograph STATEMENT`` at the beginning of a logical line; IPython finds it by its tokens."""

    priority = 5  # before the transformation of magics in general

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> StatementTransform | None:
        """The first such line of a cell."""
        for line in tokens_by_line:
            at = 0
            while at < len(line) and line[at].type in (tokenize.INDENT, tokenize.DEDENT):
                at += 1
            if [token.string for token in line[at : at + 2]] == ["%", "tachograph"] and _statement(line[at].line):
                return cls(line[at].start)
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """The lines of the cell with this one as a ``with`` statement."""
        end = find_end_of_continued_line(lines, self.start_line)
        line = assemble_continued_line(lines, (self.start_line, self.start_col), end)
        found = _LINE.match(line)
        words = None if found is None else read(found[1])
        if found is None or words is None or not words.rest:
            raise SyntaxError  # then it is the magic of that name
        options = found[1].strip().removesuffix(words.rest).strip()
        indent = lines[self.start_line][: self.start_col]
        text = f"{indent}with get_ipython().{ATTRIBUTE}.line({options!r}): {words.rest}\n"
        # As many lines as there were: those behind it keep their numbers.
        return [*lines[: self.start_line], text, *["\n"] * (end - self.start_line), *lines[end + 1 :]]


def _statement(line: str) -> bool:
    """Whether there is a statement behind the magic; else it is the magic itself that runs, or says what is wrong."""
    found = _LINE.match(line.strip())
    if found is None or verb_of(found[1])[0] is not None:
        return False
    try:
        return bool(read(found[1]).rest)
    except WrongWordsError:
        return False
