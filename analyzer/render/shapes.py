"""What a line does, seen from its syntax: the shapes that advice knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

GROWN, CUT, GATHERED = "grown", "cut", "gathered"
"""A name in a loop that is made anew with something added, without its beginning, or out of arrays joined."""

_ARRAYS = re.compile(r"^\s*(import|from)\s+(numpy|pandas|torch)\b", re.MULTILINE)
_JOINING = ("concatenate", "append", "vstack", "hstack", "stack", "concat")


@dataclass(slots=True)
class Loop:
    """A loop that counts up to a size of an array; ``elements`` are its lines that index by its counters.

    ``certain`` says that single elements are meant: an index has counters of two loops, and no slice.
    """

    first: int
    last: int
    elements: set[int] = field(default_factory=set)
    certain: bool = False
    recurrent: bool = False
    """Whether an element is made of an earlier one of the same array: then no expression does it."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """What was found in a file.

    ``copying`` has by line the name that is copied whole again and again, and how; ``loops`` the outermost loops that
    count, if arrays are in sight at all.
    """

    copying: dict[int, tuple[str, str]]
    loops: list[Loop]


@lru_cache(maxsize=16)
def shapes(text: str) -> Shapes:
    """The shapes of a file; none of a text that is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Shapes({}, [])
    copying: dict[int, tuple[str, str]] = {}
    for loop in ast.walk(tree):
        if isinstance(loop, ast.For | ast.While):
            for line, found in _copying(loop):
                copying.setdefault(line, found)
    return Shapes(copying, list(_outermost(tree)) if _ARRAYS.search(text) else [])


def _copying(loop: ast.For | ast.While) -> Iterator[tuple[int, tuple[str, str]]]:
    """Assignments of a loop's body that copy what they assign to."""
    for node in (inside for statement in loop.body for inside in ast.walk(statement)):
        if not (isinstance(node, ast.Assign) and len(node.targets) == 1):
            continue
        name = ast.unparse(node.targets[0])
        shape = _shape(node.value, name) if isinstance(node.targets[0], ast.Name | ast.Attribute) else None
        if shape:
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                yield line, (name, shape)


def _shape(value: ast.expr, name: str) -> str | None:
    """How an expression makes ``name`` anew from itself, if it does."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        first: ast.expr = value
        while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add):
            first = first.left
        return GROWN if ast.unparse(first) == name else None
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        return CUT if value.slice.upper is None and ast.unparse(value.value) == name else None
    if isinstance(value, ast.Call) and value.args and _called(value) in _JOINING:
        parts = value.args[0].elts if isinstance(value.args[0], ast.List | ast.Tuple) else value.args[:1]
        return GATHERED if any(ast.unparse(part) == name for part in parts) else None
    return None


def _called(call: ast.Call) -> str:
    """The last part of the name of what is called, if it belongs to something (``np.append``, not ``append``)."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _outermost(node: ast.AST) -> Iterator[Loop]:
    """Loops that count and index, without those inside of others."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.For) and _counts(child):
            yield _loop(child)
        else:
            yield from _outermost(child)


def _loop(outer: ast.For) -> Loop:
    found = Loop(outer.lineno, outer.end_lineno or outer.lineno)
    counters = [
        {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
        for node in ast.walk(outer)
        if isinstance(node, ast.For) and _is_range(node)
    ]
    stored = {
        ast.unparse(node.value)
        for node in ast.walk(outer)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(outer):
        if not isinstance(node, ast.Subscript):
            continue
        used = {name.id for name in ast.walk(node.slice) if isinstance(name, ast.Name)}
        by = sum(bool(used & each) for each in counters)
        if by:
            found.elements.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        found.recurrent |= isinstance(node.ctx, ast.Load) and _earlier(node) and ast.unparse(node.value) in stored
        found.certain |= by >= 2 and bool(parts) and not any(isinstance(part, ast.Slice) for part in parts)
    return found


def _earlier(node: ast.Subscript) -> bool:
    """Whether an index has something taken off: ``a[i - 1]``."""
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) for part in ast.walk(node.slice))


def _is_range(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"


def _counts(loop: ast.For) -> bool:
    """Whether a loop counts up to the size of something that has a shape or a size."""
    sizes = (isinstance(node, ast.Attribute) and node.attr in ("shape", "size") for node in ast.walk(loop.iter))
    return _is_range(loop) and any(sizes)
