"""Names that Cython gives to the C functions that it makes, made readable again.

``__pyx_f_7sklearn_4tree_5_tree_21DepthFirstTreeBuilder_build`` is ``sklearn.tree._tree.DepthFirstTreeBuilder.build``.
Source: Cython's ``Naming.py`` and ``ModuleNode.mangle``.
"""

from __future__ import annotations

import re

_FUNCTION = re.compile(r"(?:__pyx_fuse_[0-9_]*)?__pyx_(pw|pf|f|gb|specialmethod)_(?=\d)")
"""Wrappers, functions of Python, functions of C, and bodies of generators; of fused types one for each type."""

_PART = re.compile(r"(\d{1,3})")
_COUNT = re.compile(r"\d+(?=[A-Za-z_])")
_MOST_PARTS = 20


def cython_name(symbol: str) -> str | None:
    """The qualified name of a function of Cython; None for any other symbol."""
    start = _FUNCTION.match(symbol)
    if start is None:
        return None
    rest = symbol[start.end() :].partition("(")[0]
    parts: list[str] = []
    while len(parts) < _MOST_PARTS and (length := _PART.match(rest)):
        end = length.end() + int(length[1])
        if not length.end() < end < len(rest) or rest[end] != "_":
            break
        parts.append(rest[length.end() : end])
        rest = rest[end + 1 :]
    if start[1] != "f":
        rest = _COUNT.sub("", rest, count=1) if _COUNT.match(rest) else rest  # functions of one name are counted
    return ".".join([*parts, rest]) if parts and rest else None
