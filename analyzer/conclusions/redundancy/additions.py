"""Decides from the text of a function what its calls only add to: a collection of an object's that grows with each."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...source_code.names import Names
from ...source_code.source import dotted, spelled
from .effects import MAKING_LONGER, OwnFunctions, changed_by, grows


def grown_by_calls(functions: OwnFunctions, scope: ast.FunctionDef) -> set[str]:
    """Attributes of a function's arguments that it makes longer by a piece, and does not change otherwise.

    The other functions of the class may begin anew, but not take anything off.
    """
    names = functions.names
    grown: set[str] = set()
    for statement in _assignments(scope):
        text = dotted(statement.targets[0])
        if text is not None and _is_longer(names, statement.value, text):
            grown.add(text)
    longer = {text for text in grown if _only_grows(names, scope, text)} - functions.mutated_by(
        [each for each in scope.body if not isinstance(each, ast.Assign)]
    )
    return longer | appended_by_calls(functions, scope)


def appended_by_calls(functions: OwnFunctions, scope: ast.FunctionDef) -> set[str]:
    """Lists and sets of an object's that a method adds to in their place, and that its class does not change otherwise.

    The class may begin anew with an empty one.
    """
    names = functions.names
    owner = names.module.class_around(scope)
    places = {
        text: each.func.value
        for each in _inside(scope)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and grows(names, each)
        if isinstance(each.func.value, ast.Attribute) and (text := dotted(each.func.value)) is not None
    }
    if owner is None or not places:
        return set()
    changed: set[str] = set()
    for each in ast.walk(owner):
        if isinstance(each, ast.Subscript | ast.AugAssign):
            target = each.value if isinstance(each, ast.Subscript) else each.target
            if isinstance(each, ast.AugAssign) or not isinstance(each.ctx, ast.Load):
                changed.add(dotted(target) or "?")
        elif isinstance(each, ast.Call) and not grows(names, each) and not _is_own_method(each):
            changed |= functions.mutated_by_call(each)
    return {
        text
        for text, place in places.items()
        if text not in changed and all(_is_empty(names, value) for value in names.values(place))
    }


def _is_own_method(call: ast.Call) -> bool:
    """True for ``self.method()``: what that does is in the class itself."""
    function = call.func
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self"


def _is_empty(names: Names, value: ast.expr | None) -> bool:
    """True for a new list or set without elements, and without a largest length."""
    if isinstance(value, ast.Call):
        of_nothing = not value.args and not value.keywords
        return of_nothing and names.called(value) in ("list", "set", "collections.deque")
    return isinstance(value, ast.List) and not value.elts


def filled_by_calls(functions: OwnFunctions, scope: ast.FunctionDef) -> set[str]:
    """The texts of slices ``rows[: count]`` of attributes where each call fills ``rows[count]``, and counts on."""
    body: Sequence[ast.stmt] = scope.body
    counters = {
        text
        for each in _inside(scope)
        if isinstance(each, ast.AugAssign)
        and isinstance(each.op, ast.Add)
        and isinstance(each.value, ast.Constant)
        and isinstance(each.target, ast.Attribute)
        and (text := dotted(each.target)) is not None
    }
    # As where it begins anew when it is full.
    bound = {dotted(target) for each in _inside(scope) if isinstance(each, ast.Assign) for target in each.targets}
    changed = changed_by(functions, [each for each in body if not isinstance(each, ast.Assign | ast.AugAssign)])
    if changed is None:
        return set()
    stores: dict[str, set[str | None]] = {}
    for each in _inside(scope):
        if isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
            stores.setdefault(dotted(each.value) or "?", set()).add(_first(each))
    return {
        text
        for each in _inside(scope)
        if isinstance(each, ast.Subscript)
        and isinstance(each.slice, ast.Slice)
        and each.slice.lower is each.slice.step is None
        and each.slice.upper is not None
        and (count := dotted(each.slice.upper)) in counters - bound
        and (array := dotted(each.value)) is not None
        and array not in changed | bound
        and stores.get(array) == {count}
        and (text := spelled(each)) is not None
    }


def _first(node: ast.Subscript) -> str | None:
    """The first of the indexes."""
    return dotted(node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice)


def _inside(scope: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in scope.body:
        yield from ast.walk(statement)


def _assignments(scope: ast.FunctionDef) -> Iterator[ast.Assign]:
    """Those to one attribute."""
    for each in _inside(scope):
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Attribute):
            yield each


def _is_longer(names: Names, value: ast.expr | None, text: str) -> bool:
    """True for a call that makes something new of all that has this text, and a piece."""
    if not isinstance(value, ast.Call) or names.called(value) not in MAKING_LONGER or not value.args:
        return False
    first = value.args[0]
    pieces = first.elts if isinstance(first, ast.Tuple | ast.List) else value.args
    return any(spelled(each) == text for each in pieces)


def _only_grows(names: Names, scope: ast.FunctionDef, text: str) -> bool:
    """True if nothing in the function or in its class makes something else of what has this text."""
    places = [each for each in _inside(scope) if isinstance(each, ast.Attribute) and dotted(each) == text]
    stores = sum(not isinstance(each.ctx, ast.Load) for each in places)
    longer = sum(
        dotted(each.targets[0]) == text and _is_longer(names, each.value, text) for each in _assignments(scope)
    )
    return stores == longer and all(
        value is not None and (_is_longer(names, value, text) or not _has(value, text))
        for value in names.values(places[0])
    )


def _has(value: ast.expr, text: str) -> bool:
    return any(isinstance(each, ast.Attribute) and dotted(each) == text for each in ast.walk(value))
