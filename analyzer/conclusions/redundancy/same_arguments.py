"""Proves from the text of a file that a function is called again and again with the same arguments."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from ...source_code.names import PURE_METHODS, Names
from ...source_code.source import LoopNode, Scope, dotted, short

MAX_DEPTH = 60
"""Expressions within expressions, and names that stand for them."""
_PURE_PACKAGES = frozenset({"numpy", "math"})
_IMPURE = frozenset({"random", "copyto", "put", "place", "putmask", "fill_diagonal"})
_TYPES = frozenset({"bool", "int", "float", "complex"})


@dataclass(frozen=True)
class _Repeated:
    """The call in a loop that runs an expression of another function again and again."""

    call: ast.Call
    line: int
    same: bool
    """True if the loop does not change its arguments, as far as the expression is made of them."""


def why_same(names: Names, node: ast.expr, callers: Sequence[int]) -> str | None:
    """The reason, as a sentence, that an expression outside of any loop is the same each time; None if not proved.

    It has to be made of nothing but the arguments of its function, and one of the function's ``callers`` (lines of the
    same file, from the function's own out) has to be in a loop that does not change what it passes.
    """
    repeated = _repeated(names, node, callers)
    if repeated is None or not repeated.same:
        return None
    return f"{short(repeated.call)} on line {repeated.line} is called each time round a loop, with the same arguments."


def differs(names: Names, node: ast.expr, callers: Sequence[int]) -> bool:
    """True if an expression outside of any loop gets another value each time: from arguments, or a running state.

    A running state is what the function itself has stored, for its next call to find.
    """
    repeated = _repeated(names, node, callers)
    return _state_changes(names, node) if repeated is None else not repeated.same


def _repeated(names: Names, node: ast.expr, callers: Sequence[int]) -> _Repeated | None:
    scope = names.module.scope(node)
    if names.module.loops(node):
        return None
    needed = _Ingredients(names, scope).of(node)
    for line in callers:
        if needed is None or not isinstance(scope, ast.FunctionDef):
            return None
        call = _call_of(names, scope, line)
        passed = None if call is None else _passed(scope, call, needed)
        if call is None or passed is None:
            return None
        loops = names.module.loops(call)
        if loops:
            return _Repeated(call, line, all(_is_fixed(names, each, loops[0]) for each in passed))
        scope = names.module.scope(call)
        needed = _Ingredients(names, scope).together(passed)
    return None


def _state_changes(names: Names, node: ast.expr) -> bool:
    """True if an expression reads what its own function stores into."""
    scope = names.module.scope(node)
    if not isinstance(scope, ast.FunctionDef):
        return False
    stored = _stored_for_later(names, scope)
    return any(dotted(part) in stored for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute))


def _stored_for_later(names: Names, scope: ast.FunctionDef) -> set[str]:
    """The names of what a function stores into and did not make itself."""
    stored: set[str] = set()
    own = names.bindings(scope)
    parameters = _parameters(scope)
    declared: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Global | ast.Nonlocal):
            declared.update(node.names)
        elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            base: ast.AST = node
            while isinstance(base, ast.Subscript):
                base = base.value
            name = dotted(base) or ""
            first = name.partition(".")[0]
            if name and (first not in own or first in parameters):
                stored.add(name)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            stored.add(node.target.id)
    return stored | declared


def _parameters(scope: ast.FunctionDef) -> set[str]:
    return {each.arg for each in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)}


class _Ingredients:
    """The arguments of a function that its expressions are made of; None for expressions with anything else in them."""

    def __init__(self, names: Names, scope: Scope) -> None:
        self._names = names
        self._scope = scope
        self._own = names.bindings(scope) if isinstance(scope, ast.FunctionDef) else {}
        self._parameters = set[str]()
        self._changed = set[str]()
        if isinstance(scope, ast.FunctionDef):
            self._parameters = {
                each.arg for each in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)
            }
            self._changed = _stored_for_later(names, scope)
        self._of_names: dict[str, set[str] | None] = {}
        self._depth = 0

    def of(self, node: ast.AST) -> set[str] | None:
        """Those of an expression."""
        if self._depth >= MAX_DEPTH:
            return None
        self._depth += 1
        ingredients = self._of(node)
        self._depth -= 1
        return ingredients

    def _of(self, node: ast.AST) -> set[str] | None:
        if isinstance(node, ast.Constant):
            return set()
        if isinstance(node, ast.Name):
            if node.id not in self._of_names:
                self._of_names[node.id] = None  # while it is being looked at: a name made of itself differs
                self._of_names[node.id] = self._of_name(node)
            return self._of_names[node.id]
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, ast.Attribute):  # np.pi, np.float32
            package = self._names.modules.get((dotted(node) or "").partition(".")[0], "")
            return set() if package.partition(".")[0] in _PURE_PACKAGES else None
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.List | ast.Tuple | ast.Compare | ast.Subscript | ast.Slice):
            return self.together([each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)])
        return None

    def together(self, nodes: Sequence[ast.AST]) -> set[str] | None:
        """Those of several expressions."""
        union: set[str] = set()
        for node in nodes:
            part = self.of(node)
            if part is None:
                return None
            union |= part
        return union

    def _of_name(self, node: ast.Name) -> set[str] | None:
        bound = self._own.get(node.id)
        if bound is None:
            return set() if _is_constant(self._names, node) else None
        if node.id in self._changed or len(bound) != 1:
            return None
        if bound[0] is not None:
            return self.of(bound[0])
        return {node.id} if node.id in self._parameters else None

    def _of_call(self, node: ast.Call) -> set[str] | None:
        function = self._names.called(node)
        parts: list[ast.AST] = [*node.args, *(keyword.value for keyword in node.keywords)]
        if function is not None:
            package, _, rest = function.partition(".")
            if package not in _PURE_PACKAGES or rest.partition(".")[0] in _IMPURE:
                return None
        elif isinstance(node.func, ast.Attribute) and node.func.attr in PURE_METHODS:
            parts.append(node.func.value)
        else:
            return None
        return self.together(parts)


def _is_constant(names: Names, node: ast.Name) -> bool:
    """True if a name of the module, or of Python itself, stands for one number, text or type as long as it runs."""
    bound = names.binding(node.id, node)
    if not bound:
        return node.id in _TYPES  # the dtype in np.array(x, float)
    (value, *others) = bound
    if value is None or others:
        return False
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    number = isinstance(value, ast.Call) and names.called(value) in _TYPES and not names.module.loops(value)
    return number or isinstance(value, ast.Constant)


def _call_of(names: Names, function: ast.FunctionDef, line: int) -> ast.Call | None:
    """The only call of a function, or method, of this name on a line."""
    calls = [
        node
        for node in names.module.expressions(line)
        if isinstance(node, ast.Call)
        and function.name
        == (
            node.func.attr
            if isinstance(node.func, ast.Attribute)
            else node.func.id
            if isinstance(node.func, ast.Name)
            else None
        )
    ]
    return calls[0] if len(calls) == 1 else None


def _passed(function: ast.FunctionDef, call: ast.Call, needed: set[str]) -> list[ast.expr] | None:
    """Arguments that a call passes for these parameters; None if unknown. Parameters left out are constants."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if parameters[:1] == ["self"] and isinstance(call.func, ast.Attribute):
        parameters = parameters[1:]
    given = dict(zip(parameters, call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
    if "self" in needed:
        return None
    return [given[name] for name in sorted(needed) if name in given]


def _is_fixed(names: Names, node: ast.expr, loop: LoopNode) -> bool:
    if isinstance(node, ast.Name):
        bound = names.binding(node.id, node)
        if len(bound) == 1 and isinstance(bound[0], ast.Constant):
            return True
    return isinstance(node, ast.Constant) or names.fixed(node, loop)
