"""A source text, parsed: which statement a line belongs to, and which loops it is in. No source is executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARACTERS = 300_000
MAX_NODES = 5_000
"""Nodes of one statement that rules look at."""

LARGE = 60
"""Nodes of an expression whose text is too long to read."""

MAX_PARTS = 12
"""Parts of a dotted name."""

MAX_STATEMENTS = 4
"""Statements on one line that rules look at."""

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
LoopNode = ast.For | ast.AsyncFor | ast.While | ast.comprehension
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_SKIPPED = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


@dataclass(frozen=True, eq=False)
class Module:
    """The syntax tree of a file: the parent of each node, and the statements of each line."""

    tree: ast.Module
    parent: dict[ast.AST, ast.AST]
    statements: dict[int, list[ast.stmt]]
    """By line; of a compound statement the lines of its head."""

    def expressions(self, line: int) -> Iterator[ast.expr]:
        """The expressions on a line, those of the heads of compound statements too, the outer ones first."""
        for statement in self.statements.get(line, ()):
            for node in parts_of(statement):
                if isinstance(node, ast.expr) and node.lineno <= line <= (node.end_lineno or node.lineno):
                    yield node

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that a node is part of."""
        while not isinstance(node, ast.stmt):
            if node not in self.parent:
                return None
            node = self.parent[node]
        return node

    def scope(self, node: ast.AST) -> Scope:
        """The function that a node is in, or the module."""
        while node in self.parent:
            node = self.parent[node]
            if isinstance(node, Function):
                return node
        return self.tree

    def class_around(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class that a node is in."""
        while node in self.parent:
            node = self.parent[node]
            if isinstance(node, ast.ClassDef):
                return node
        return None

    def loops(self, node: ast.AST) -> list[LoopNode]:
        """The loops of the same function that run a node again and again, the innermost first."""
        loops: list[LoopNode] = []
        while node in self.parent:
            child, node = node, self.parent[node]
            if isinstance(node, Function | ast.ClassDef):
                break
            if isinstance(node, ast.For | ast.AsyncFor | ast.While):
                if child in node.body or child is getattr(node, "test", None):
                    loops.append(node)
            elif isinstance(node, _Comprehension):
                inner = node.generators.index(child) if isinstance(child, ast.comprehension) else len(node.generators)
                loops += reversed(node.generators[:inner])
            elif isinstance(node, ast.comprehension) and child is not node.iter:
                loops.append(node)
        return list(dict.fromkeys(loops))


def parse(text: str) -> Module | None:
    """The parsed text; None if it is no Python of this version, or too long."""
    if not text or len(text) > MAX_CHARACTERS or text.count("\n") > MAX_CHARACTERS // 10:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the text
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    parent: dict[ast.AST, ast.AST] = {}
    statements: dict[int, list[ast.stmt]] = {}
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, _SKIPPED):
                parent[child] = node
                waiting.append(child)
        if isinstance(node, ast.stmt):
            for line in range(node.lineno, _last_line(node) + 1):
                at = statements.setdefault(line, [])
                if len(at) < MAX_STATEMENTS:
                    at.append(node)
    return Module(tree, parent, statements)


def _last_line(node: ast.stmt) -> int:
    """The last line of a simple statement, or of the head of a compound one."""
    body: list[ast.stmt] | None = getattr(node, "body", None)
    if body:
        return max(node.lineno, body[0].lineno - 1)
    cases: list[ast.match_case] | None = getattr(node, "cases", None)
    if cases:
        return max(node.lineno, cases[0].pattern.lineno - 1)
    return node.end_lineno or node.lineno


def parts_of(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement without the statements in it, the outer ones first; at most ``MAX_NODES``."""
    waiting: list[ast.AST] = [statement]
    for _ in range(MAX_NODES):
        if not waiting:
            return
        node = waiting.pop()
        yield node
        waiting += (
            child
            for child in reversed(list(ast.iter_child_nodes(node)))
            if not isinstance(child, (ast.stmt, ast.match_case, ast.excepthandler, *_SKIPPED))
        )


def body_of(loop: LoopNode, module: Module) -> list[ast.AST]:
    """The nodes that a loop runs each time round; for a comprehension the expressions around it, without ``iter``."""
    if isinstance(loop, ast.comprehension):
        around = module.parent[loop]
        return [child for child in ast.iter_child_nodes(around) if child is not loop] + [loop.target, *loop.ifs]
    if isinstance(loop, ast.While):
        return [loop.test, *loop.body]
    return [loop.target, *loop.body]


def dotted(node: ast.AST) -> str | None:
    """A name with its attributes, as ``self.cache``; None for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute) and len(names) < MAX_PARTS:
        names.append(node.attr)
        node = node.value
    return ".".join(reversed([*names, node.id])) if isinstance(node, ast.Name) else None


def names_in(node: ast.AST) -> set[str]:
    """The plain names in a node, read or bound."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def spelled(node: ast.expr) -> str | None:
    """The text of an expression; None of a large one, which may nest deeper than ``ast.unparse`` can go."""
    if sum(1 for _ in zip(range(LARGE), ast.walk(node), strict=False)) >= LARGE:
        return None
    return ast.unparse(node)


def short(node: ast.expr, most: int = 48) -> str:
    """The text of a small expression, cut at ``most`` characters; of a large one only that it is one."""
    text = spelled(node)
    if text is None:
        return "the expression"
    return text if len(text) <= most else f"{text[: most - 1]}…"
