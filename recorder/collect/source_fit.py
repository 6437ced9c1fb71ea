"""Tells whether a source text is that of the code that ran: a file may be changed after it was imported.

A deployment that changes files under a running server is the usual case, and ``attach`` comes later. Texts are compared
with the code objects in the recording, by the facts that those bring along: names, first lines and line tables.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import NamedTuple

from tachograph.format.spool.codes_table import CodeLines, line_steps, source_text

_FIRST_LINE = re.compile(r"\s*(?:@|(?:async\s+)?def\b|class\b)")
_NAME = re.compile(r"\s*(?:async\s+)?(?:def|class)\s+(\w+)")
_OPTIMIZATIONS = (0, 1, 2)
_NO_NAME = "<"  # of lambdas, comprehensions and modules
_ANNOTATE = "__annotate__"
_PYTHON = ("", ".py", ".pyw")


class Changed(NamedTuple):
    """A file that was changed after the program began.

    ``compiled_from_another`` is what the compiled file beside it says; ``may_compile`` is False for the text of a
    program that has given up rights which this process has: its compiler is not given what that has made.
    """

    compiled_from_another: bool
    may_compile: bool


def fits(content: bytes, path: str, codes: Iterable[CodeLines], changed: Changed | None) -> bool:
    """True unless the text of file ``path`` is proved not to be that of ``codes``.

    A text that was ``changed`` after the program began is compiled, and has to have the lines of the code that ran.
    """
    found = [code for code in codes if not code.is_generated]
    text = source_text(content) if found else None
    if text is None or os.path.splitext(path)[1] not in _PYTHON:
        return True
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    moved, gone = _first_lines(lines, found)
    if moved:
        return False
    if changed is None:
        return True
    if gone or changed.compiled_from_another:
        return False
    return not changed.may_compile or _has_lines(content, path, found)


def _first_lines(lines: Sequence[str], codes: Iterable[CodeLines]) -> tuple[bool, bool]:
    """Whether a definition is on another line than where its code object begins, and whether there is one no more."""
    defined = {match[1] for line in lines if (match := _NAME.match(line)) is not None}
    gone = False
    for code in codes:
        name = code.qualname.rpartition(".")[2]
        if name.startswith(_NO_NAME) or name == _ANNOTATE or not name.isascii():
            continue
        line = lines[code.first_line - 1] if 0 < code.first_line <= len(lines) else ""
        match = _NAME.match(line)
        if match[1] == name if match is not None else _FIRST_LINE.match(line):
            continue
        if name in defined:
            return True, gone
        # Code that was made at run time, by a compiler of its own, may have a name that no text has.
        gone = True
    return False, gone


def _has_lines(content: bytes, path: str, codes: Sequence[CodeLines]) -> bool:
    """True if the text, compiled by this interpreter, has code objects with these names, first lines and lines."""
    return any(_compiled_has(content, path, codes, optimization) for optimization in _OPTIMIZATIONS)


def _compiled_has(content: bytes, path: str, codes: Sequence[CodeLines], optimization: int) -> bool:
    compiled: dict[tuple[str, int], list[CodeType]] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its syntax: the program was shown them
            pending = [compile(content, path, "exec", dont_inherit=True, optimize=optimization)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    while pending:
        code = pending.pop()
        compiled.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
        pending += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    exact = 0
    differing = []
    for recorded in codes:
        same_place = compiled.get((recorded.qualname, recorded.first_line), [])
        if not same_place:
            return False
        if recorded.line_table is None or any(code.co_linetable == recorded.line_table for code in same_place):
            exact += recorded.line_table is not None
        else:
            differing.append((recorded.line_table, [code.co_linetable for code in same_place]))
    # Where some are equal to the last column, the same compiler made them: then all would be.
    return not differing if exact else all(_same_lines(table, tables) for table, tables in differing)


def _same_lines(table: bytes, compiled: Iterable[bytes]) -> bool:
    """True if they have the same lines: another version of the interpreter, or no columns, make other tables."""
    return any(line_steps(each) == line_steps(table) for each in compiled)
