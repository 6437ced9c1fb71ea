"""What a line does, seen from its syntax: the shapes that advice knows."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

GROWN, CUT, GATHERED = "grown", "cut", "gathered"
"""A name in a loop that is made anew with something added, without its beginning, or out of arrays joined."""

_ARRAYS = re.compile(r"^[ \t]*(import|from)[ \t]+(numpy|pandas|torch)\b", re.MULTILINE)
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the text, not of ours
            return _found(ast.parse(text), arrays=_ARRAYS.search(text) is not None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Shapes({}, [])


def _found(tree: ast.Module, *, arrays: bool) -> Shapes:
    copying: dict[int, tuple[str, str]] = {}
    for assignment in _assignments_in_loops(tree):
        for line, found in _copying(assignment):
            copying.setdefault(line, found)
    return Shapes(copying, list(_outermost(tree)) if arrays else [])


def _assignments_in_loops(tree: ast.Module) -> Iterator[ast.Assign]:
    """Assignments in the bodies of loops, each once."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, inside = waiting.pop()
        if inside and isinstance(node, ast.Assign):
            yield node
        body = set(map(id, node.body)) if isinstance(node, ast.For | ast.While) else ()
        waiting += ((child, inside or id(child) in body) for child in ast.iter_child_nodes(node))


def _copying(node: ast.Assign) -> Iterator[tuple[int, tuple[str, str]]]:
    """The lines of an assignment that copies what it assigns to."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name | ast.Attribute):
        return
    name = ast.unparse(node.targets[0])
    shape = _shape(node.value, name)
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


def _outermost(tree: ast.Module) -> Iterator[Loop]:
    """Loops that count and index, without those inside of others."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.For) and _counts(node):
            yield _loop(node)
        else:
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _loop(outer: ast.For) -> Loop:
    found = Loop(outer.lineno, outer.end_lineno or outer.lineno)
    counted_by = _counters(outer)
    stored = {
        ast.unparse(node.value)
        for node in ast.walk(outer)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(outer):
        if not isinstance(node, ast.Subscript):
            continue
        used = {name.id for name in ast.walk(node.slice) if isinstance(name, ast.Name)}
        by = len(set().union(*(counted_by.get(name, ()) for name in used)))
        if by:
            found.elements.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        found.recurrent |= isinstance(node.ctx, ast.Load) and _earlier(node) and ast.unparse(node.value) in stored
        found.certain |= by >= 2 and bool(parts) and not any(isinstance(part, ast.Slice) for part in parts)
    return found


def _counters(outer: ast.For) -> dict[str, list[int]]:
    """The names that count in a loop and those inside of it, each with the first two loops (numbers) that it counts."""
    counted_by: dict[str, list[int]] = {}
    for number, node in enumerate(ast.walk(outer)):
        if isinstance(node, ast.For) and _is_range(node):
            for name in {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}:
                loops = counted_by.setdefault(name, [])
                if len(loops) < 2:
                    loops.append(number)
    return counted_by


def _earlier(node: ast.Subscript) -> bool:
    """Whether an index has something taken off: ``a[i - 1]``."""
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) for part in ast.walk(node.slice))


def _is_range(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"


def _counts(loop: ast.For) -> bool:
    """Whether a loop counts up to the size of something that has a shape or a size."""
    sizes = (isinstance(node, ast.Attribute) and node.attr in ("shape", "size") for node in ast.walk(loop.iter))
    return _is_range(loop) and any(sizes)
