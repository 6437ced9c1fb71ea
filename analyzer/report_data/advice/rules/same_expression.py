"""A rule about expressions that give the same each time, as nothing that they are made of changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import PURE, PURE_METHODS, Names, is_pure
from ....source_code.source import Function, LoopNode, dotted, short
from ..program import Finding, Program, Rule
from .repeated import depends_on_arguments, round_of, varies_by_round
from .scans import changed

SAME_SHARE = 0.10
"""The part of the CPU time at the line, at the low end of its interval."""

MAX_DEPTH = 4
"""Names of which one is made of the next."""

_PARTS = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Tuple, ast.List),
    *(ast.Slice, ast.Call, ast.keyword, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop),
)


def same_expression(program: Program) -> Iterator[Finding]:
    """Lines of a loop, or of a function that a loop calls, whose only expression is the same each time."""
    for spot in program.spots:
        if spot.line.low < SAME_SHARE:
            continue
        for statement in spot.module.statements.get(spot.line.line, ()):
            value = statement.value if isinstance(statement, ast.Assign | ast.Return) else None
            if value is None or not any(isinstance(each, ast.Call | ast.BinOp) for each in ast.walk(value)):
                continue
            loops = spot.module.loops(statement)
            around = None if loops else round_of(spot.names, statement)
            if not loops and around is None:
                continue
            if isinstance(statement, ast.Assign) and not _only_read(statement, spot.names):
                continue
            made_of = _Same(spot.names, loops[0] if loops else None)
            if not made_of.same(value, MAX_DEPTH):
                continue
            if around is not None and made_of.owner and varies_by_round(spot.names, made_of.owner, around) is not False:
                continue  # each round may be another object's only call
            when, instead = "in each round of the loop", "do it once, before the loop"
            if not loops:
                when, instead = (
                    "at each call",
                    "do it once and keep the result (in __init__, or functools.cached_property)",
                )
                instead += "" if isinstance(statement, ast.Assign) else ", where callers do not change it"
            parts = ", ".join(sorted(made_of.attributes))
            yield spot.finding(
                f"{short(value)} gives the same {when}: nothing in this file changes"
                f" {parts or 'what it is made of'} meanwhile.",
                instead,
            )
            break


def _only_read(made: ast.Assign, names: Names) -> bool:
    """True if what a statement makes is bound to one name, and that is only read."""
    target = made.targets[0]
    if len(made.targets) != 1 or not isinstance(target, ast.Name):
        return False
    for node in ast.walk(names.module.scope(made)):
        if not isinstance(node, ast.Name) or node.id != target.id or node is target:
            continue
        use = names.module.parent[node]
        read = isinstance(use, ast.BinOp | ast.Compare | ast.For | ast.comprehension)
        read |= isinstance(use, ast.Subscript) and isinstance(use.ctx, ast.Load)
        read |= isinstance(use, ast.Attribute) and (use.attr in PURE_METHODS or use.attr in ("T", "shape", "size"))
        read |= isinstance(use, ast.Call) and node in use.args and _leaves(use, names)
        if not isinstance(node.ctx, ast.Load) or not read:
            return False
    return True


def _leaves(call: ast.Call, names: Names) -> bool:
    """True if a call does not change its arguments."""
    name = names.called(call)
    if any(each.arg in ("out", None) for each in call.keywords) or name is None:
        return False
    return name in PURE or is_pure(name)


class _Same:
    """Proves that expressions give the same each time round a loop, or at each call of their function."""

    def __init__(self, names: Names, loop: LoopNode | None) -> None:
        self._names, self._loop = names, loop
        self.owner: ast.Name | None = None
        self.attributes: set[str] = set()
        """The attributes that an expression is made of, as written."""

    def same(self, node: ast.expr, depth: int) -> bool:
        """True if the value is certainly the same."""
        if depth == 0:
            return False
        for part in ast.walk(node):
            if not isinstance(part, _PARTS) or (
                isinstance(part, ast.Call) and not depends_on_arguments(part, self._names)
            ):
                return False
            if isinstance(part, ast.Name) and not self._name(part, depth):
                return False
        return True

    def _name(self, name: ast.Name, depth: int) -> bool:
        names, module = self._names, self._names.module
        above = module.parent[name]
        if name.id in names.modules:
            return True
        if isinstance(above, ast.Call) and above.func is name:
            return True  # the call itself was looked at
        scope = module.scope(name)
        if name.id == "self" and isinstance(above, ast.Attribute):
            return self._attribute(above)
        if not isinstance(scope, ast.FunctionDef) or name.id not in names.bindings(scope):
            values = names.binding(name.id, name)
            return len(values) == 1 and isinstance(values[0], ast.Constant)
        if changed(scope if self._loop is None else self._region(), {f"[{name.id}]"}):
            return False
        values = names.bindings(scope)[name.id]
        if self._loop is not None:
            changes = names.changes(self._loop)
            if changes is not None and not any(each.partition(".")[0] == name.id for each in changes | {""} - {""}):
                return "" not in changes
        return len(values) == 1 and values[0] is not None and self.same(values[0], depth - 1)

    def _region(self) -> ast.AST:
        assert self._loop is not None
        return self._names.module.parent[self._loop] if isinstance(self._loop, ast.comprehension) else self._loop

    def _attribute(self, node: ast.Attribute) -> bool:
        """True if an attribute is bound in ``__init__`` alone, and nothing in the file may change its object."""
        names, module, watched = self._names, self._names.module, {f".{node.attr}"}
        bound = False
        for each in module.parent:
            if isinstance(each, Function) and getattr(each, "name", "") != "__init__" and changed(each, watched):
                return False
            if isinstance(each, ast.Call) and not _leaves(each, names):
                given = (*each.args, *(keyword.value for keyword in each.keywords))
                if any((dotted(value) or "").endswith(f".{node.attr}") for value in given):
                    return False
            stored = isinstance(each, ast.Attribute) and each.attr == node.attr and isinstance(each.ctx, ast.Store)
            bound |= stored and getattr(module.scope(each), "name", "") == "__init__"
        if bound and isinstance(node.value, ast.Name):
            self.owner = node.value
            self.attributes.add(f"self.{node.attr}")
        return bound


RULES = (
    Rule(
        "same-expression",
        "CPU time by line; the source of the expression, and all that changes what it is made of, in one file",
        "10 % of the CPU time at a line that a loop runs, and that is one expression of calls that change nothing",
        same_expression,
    ),
)
