"""Proofs from the source that a node runs many times, with the same values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ....source_code.names import PURE, PURE_METHODS, Names, is_pure
from ....source_code.source import Function, LoopNode

MAX_CALLERS = 4
"""Functions of a file, each called by the next, that are looked through for a loop."""

_HANDLES = frozenset({"get", "post", "put", "patch", "delete", "route", "api_route", "websocket", "middleware"})
"""Methods of a web application, ``@app.post("/orders")``, whose function is called for each request."""


def runs_again(names: Names, node: ast.AST, depth: int = MAX_CALLERS) -> bool:
    """True if a loop or each request runs a node, or calls the function of this file that the node is in."""
    module = names.module
    if module.loops(node):
        return True
    caller = module.scope(node)
    if depth == 0 or not isinstance(caller, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if caller.decorator_list:
        return any(map(handles, caller.decorator_list))
    mine = (call for call in _calls(names, caller) if module.scope(call) is not caller)
    return any(runs_again(names, call, depth - 1) for call in mine)


_BUILT_IN = frozenset(
    name for kind in (list, dict, set, str, bytes, bytearray, tuple, int, float, object) for name in dir(kind)
)
"""Names of methods that objects of other classes have, too: which one is called is not certain."""


@dataclass(frozen=True, slots=True)
class Round:
    """A for loop that runs a node, and the functions of the file between them with their calls, innermost first."""

    loop: LoopNode
    through: tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]
    calls: tuple[ast.Call, ...]

    @property
    def line(self) -> int:
        """The first line of the loop."""
        target = self.loop.target if not isinstance(self.loop, ast.While) else self.loop
        return target.lineno


def round_of(names: Names, node: ast.AST, depth: int = MAX_CALLERS) -> Round | None:
    """The innermost loop that runs a node, in its function or in a function of this file that calls it.

    None if that is a while loop, which may wait for its next round, or if there is none.
    """
    loops = names.module.loops(node)
    if loops:
        return None if isinstance(loops[0], ast.While) else Round(loops[0], (), ())
    scope = names.module.scope(node)
    if depth == 0 or not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) or scope.decorator_list:
        return None
    for call in (*_calls(names, scope), *_method_calls(names, scope)):
        if names.module.scope(call) is not scope:
            found = round_of(names, call, depth - 1)
            if found is not None:
                return Round(found.loop, (scope, *found.through), (call, *found.calls))
    return None


_READS_ON = frozenset({"load", "fromfile", "loadtxt", "genfromtxt", "fromiter", "memmap", "nditer"})
"""Functions of NumPy and json that read what a file or an iterator has next."""

_CONSUME = frozenset(
    {
        "sum",
        "min",
        "max",
        "sorted",
        "any",
        "all",
        "zip",
        "enumerate",
        "set",
        "frozenset",
        "tuple",
        "list",
        "dict",
        "bytes",
    }
)
_OF_OTHERS = frozenset(
    {
        "get",
        "find",
        "count",
        "values",
        "items",
        "keys",
        "search",
        "index",
        "match",
        "any",
        "all",
        "item",
        "findall",
        "sub",
    }
)
"""Methods of containers, and also of queues, clients and databases, where they have other answers each time."""


def depends_on_arguments(call: ast.Call, names: Names) -> bool:
    """True if a call of a library or a built-in gives the same for the same arguments, and changes nothing."""
    if any(each.arg in ("out", None) for each in call.keywords):
        return False
    name, first = names.called(call), call.args[0] if call.args else None
    if name is None:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is None or call.func.attr not in PURE_METHODS or names.is_random(call):  # type: ignore[attr-defined]
            return False
        return call.func.attr not in _OF_OTHERS or names.kind(owner) is not None  # type: ignore[attr-defined]
    if name in PURE:
        # An iterator is another one once it was gone through.
        known = first is None or names.kind(first) is not None or isinstance(first, ast.Constant)
        return name not in ("iter", "id", "hash", "print") and (known or name not in _CONSUME)
    package, _, last = name.rpartition(".")
    return is_pure(name) and package not in ("time", "operator") and last not in _READS_ON


def root(node: ast.expr) -> str | None:
    """The name below attributes and constant subscripts: ``row`` of ``row["key"].code``."""
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def bound_in(loop: LoopNode, names: Names) -> set[str]:
    """The names that a loop binds."""
    around = names.module.parent[loop] if isinstance(loop, ast.comprehension) else loop
    inside = ast.walk(around)
    return {each.id for each in inside if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}


def varies_by_round(names: Names, node: ast.expr, around: Round) -> bool | None:
    """True if the object of a name is another one in each round, False if it is the same; None if that is not certain.

    An argument is what the calls between the loop and the node give for it.
    """
    name = root(node)
    for function, call in zip(around.through, around.calls, strict=True):
        if name is None:
            return None
        if name not in names.bindings(function):
            return False
        places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        method = isinstance(names.module.parent.get(function), ast.ClassDef)
        if name not in places or names.bindings(function)[name] != [None]:
            return None
        place = places.index(name)
        if method and place == 0:
            given = call.func.value if isinstance(call.func, ast.Attribute) else None
        else:
            given = _given(call, place - method, name)
        name = None if given is None else root(given)
    return None if name is None else name in bound_in(around.loop, names)


def _method_calls(names: Names, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Call]:
    """The calls of a method of a class of this file; none if another function or a built-in type has its name."""
    module = names.module
    if not isinstance(module.parent.get(function), ast.ClassDef) or function.name in _BUILT_IN:
        return
    functions = (each for each in module.parent if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    if sum(each.name == function.name for each in functions) != 1:
        return
    for node in module.parent:
        method = node.func if isinstance(node, ast.Call) and names.called(node) is None else None
        if isinstance(node, ast.Call) and isinstance(method, ast.Attribute) and method.attr == function.name:
            yield node


def handles(decorator: ast.expr) -> bool:
    """True of ``@app.get("/path")``: the path tells it from other decorators of that name."""
    if not isinstance(decorator, ast.Call) or not isinstance(decorator.func, ast.Attribute):
        return False
    path = decorator.args[0] if decorator.args else None
    is_path = isinstance(path, ast.Constant) and isinstance(path.value, str) and path.value.startswith("/")
    return decorator.func.attr in _HANDLES and is_path


def _calls(names: Names, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Call]:
    """The calls of a function of the module by its name; none if the name has other values."""
    module = names.module
    if function not in module.tree.body or names.binding(function.name, function) != [None]:
        return
    for name in names.mentions.get(function.name, ()):
        node = module.parent.get(name)
        if isinstance(node, ast.Call) and node.func is name:
            yield node


def arguments(names: Names, name: ast.Name) -> list[ast.expr | None]:
    """Values that calls in the file pass for a parameter; None for a call that is not certain. Empty if it is none."""
    scope = names.module.scope(name)
    if not isinstance(scope, ast.FunctionDef) or scope.decorator_list or names.bindings(scope).get(name.id) != [None]:
        return []
    places = [each.arg for each in (*scope.args.posonlyargs, *scope.args.args)]
    if name.id not in places:
        return []
    return [_given(call, places.index(name.id), name.id) for call in _calls(names, scope)]


def same_each_call(names: Names, node: ast.expr, depth: int = MAX_CALLERS) -> bool:
    """True if an expression has the same value whenever its function is called.

    It is made of names of the module, and of arguments for which all calls give such an expression.
    """
    parts = list(ast.walk(node))
    if any(isinstance(each, ast.Call | ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda) for each in parts):
        return False
    return all(_same(names, each, depth) for each in parts if isinstance(each, ast.Name))


def _same(names: Names, name: ast.Name, depth: int) -> bool:
    scope, module = names.module.scope(name), names.module
    around = scope
    while isinstance(around, Function) and name.id not in names.bindings(around):
        around = module.scope(around)
    if isinstance(around, ast.Module):
        changed = (each for each in module.parent if isinstance(each, ast.Global))
        return len(names.bindings(around).get(name.id, [])) <= 1 and not any(name.id in each.names for each in changed)
    if depth == 0 or around is not scope or not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    places = [each.arg for each in (*scope.args.posonlyargs, *scope.args.args)]
    if scope.decorator_list or name.id not in places or names.bindings(scope)[name.id] != [None]:
        return False
    given = [_given(call, places.index(name.id), name.id) for call in _calls(names, scope)]
    return bool(given) and all(each is not None and same_each_call(names, each, depth - 1) for each in given)


def _given(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """What a call gives for an argument; None if that is not certain."""
    given = [*call.args[place : place + 1], *(each.value for each in call.keywords if each.arg == name)]
    return given[0] if len(given) == 1 and not any(isinstance(each, ast.Starred) for each in call.args) else None
