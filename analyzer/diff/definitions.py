"""The functions and classes that a source text defines, and what makes two of them the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

MIN_RENAMED = 200
"""A function of another name is the same only if its syntax tree has at least this size as text: ``return self.x`` is
in many functions."""

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_KINDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, eq=False)
class Definition:
    """A function or class: its qualified name, as code objects have it, and its lines (from 1, both ends included)."""

    name: str
    first_line: int
    last_line: int
    _node: _Definition

    @property
    def bare_name(self) -> str:
        """Its name, without those of what it is in."""
        return self._node.name

    @cached_property
    def body(self) -> str | None:
        """Its syntax tree as text, without positions, comments and its own name; None if it is too deep."""
        try:
            text = ast.dump(self._node)
        except RecursionError:
            return None
        name = self._node.name
        for field in ("name", "id", "attr"):
            text = text.replace(f"{field}={name!r}", f"{field}=''")
        return text

    @property
    def telling(self) -> bool:
        """Whether its body alone tells which function it is."""
        return self.body is not None and len(self.body) >= MIN_RENAMED and len(self._node.body) > 1


def definitions(text: str) -> list[Definition] | None:
    """All functions and classes of ``text``, outer ones first; None if this Python cannot parse it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Another Python's syntax, or no Python at all.
        return None
    return list(_walk(tree))


def _walk(tree: ast.Module) -> Iterator[Definition]:
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, prefix = todo.pop()
        inside = prefix
        if isinstance(node, _KINDS):
            name = prefix + node.name
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield Definition(name, first, node.end_lineno or node.lineno, node)
            inside = f"{name}." if isinstance(node, ast.ClassDef) else f"{name}.<locals>."
        todo.extend((child, inside) for child in reversed(list(_statements(node))))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """What may hold definitions: expressions cannot, and are not looked into."""
    return (
        child
        for child in ast.iter_child_nodes(node)
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case))
    )
