"""Proofs from the source that a node runs many times, with the same values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import Names
from ....source_code.source import Function

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
        return any(map(_handles, caller.decorator_list))
    mine = (call for call in _calls(names, caller) if module.scope(call) is not caller)
    return any(runs_again(names, call, depth - 1) for call in mine)


def _handles(decorator: ast.expr) -> bool:
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
    for node in module.parent:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.name:
            yield node


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
