"""Rules for searches: one value after another that is looked for in all of an array or a list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...source_code.names import ARRAYS, Names
from ...source_code.source import dotted, short
from .candidates import ALGORITHM, ANY, MAX_OPERATIONS, Candidate, has_names
from .effects import given_arguments, parameters_of, positional
from .operands import Operands, Runs

_SEARCHING = frozenset({"where", "nonzero", "flatnonzero", "argwhere", "argmax"})
_NEAREST = frozenset({"argmin", "argsort", "argpartition", "nanargmin"})
_DISTANCES = frozenset({"abs", "absolute", "fabs", "square", "hypot", "norm"})
"""Functions that make distances of differences."""
_REDUCTIONS = frozenset(
    {
        *("sum", "mean", "median", "std", "var", "max", "min", "amax", "amin", "nanmax", "nanmin", "nanmean", "ptp"),
        *("percentile", "quantile", "item"),
    }
)
_GIVE_NUMBERS = frozenset({"int", "float", "len", "round", "math", "sum", "max", "min"})
"""Built-in functions, and a module of such: what they give is a single number, as it is of reductions."""
MAX_STEPS = 6
"""Names that stand for one another, and calls, up to a number."""
_FINDING = (
    "Sort {array} once and search in it for all values (np.searchsorted; scipy.spatial.cKDTree for points), or make a "
    "dict of it."
)


def searched_for(names: Names, runs: Runs, node: ast.expr) -> Iterator[Candidate]:
    """One value that is looked for in all of an array, also by steps on lines of their own.

    ``np.where(array == value)``, ``np.argmax(array > value)``, ``np.argmin(np.abs(array - value))``.
    """
    if isinstance(node, ast.Compare | ast.BinOp):
        searches = [each for each in _calls_around(names, node) if _name_of_function(names, each) in _NEAREST]
        array = _array_searched(names, runs, node) if searches or isinstance(node, ast.Compare) else None
        if isinstance(node, ast.BinOp) and array is not None and _is_distance(names, node, searches[0]):
            yield _search(searches[0], array)
        elif isinstance(node, ast.Compare) and array is not None:
            for call in _calls_around(names, node):
                if _name_of_function(names, call) in _SEARCHING and _is_for_one(names, call, node.ops[0]):
                    yield _search(call, array)
            chosen = names.module.parent.get(node)
            if isinstance(chosen, ast.Tuple):  # frame.loc[mask, column]
                chosen = names.module.parent.get(chosen)
            if isinstance(chosen, ast.Subscript) and isinstance(node.ops[0], ast.Eq) and _gives_one(names, chosen):
                yield _search(chosen, array)


def _gives_one(names: Names, node: ast.expr, depth: int = MAX_STEPS) -> bool:
    """True if one element is taken of what a mask has selected, and nothing else is done with it."""
    around = names.module.parent.get(node)
    if depth == 0 or around is None:
        return False
    if isinstance(around, ast.Subscript) and around.value is node:
        index = around.slice.elts[0] if isinstance(around.slice, ast.Tuple) and around.slice.elts else around.slice
        index = index.operand if isinstance(index, ast.UnaryOp) else index
        if isinstance(index, ast.Constant) and isinstance(index.value, int):
            return True
        return isinstance(index, ast.Constant) and _gives_one(names, around, depth - 1)  # a column
    if isinstance(around, ast.Attribute):
        call = names.module.parent.get(around)
        if isinstance(call, ast.Call) and call.func is around:
            is_whole = around.attr in ("to_numpy", "tolist", "to_list")
            return around.attr == "item" or (is_whole and _gives_one(names, call, depth - 1))
        return _gives_one(names, around, depth - 1)
    if isinstance(around, ast.Call):
        return names.called(around) in ("int", "float")
    if isinstance(around, ast.Assign) and isinstance(target := around.targets[0], ast.Name):
        places = [each for each in _uses_of(names, target) if isinstance(each, ast.expr)]
        is_only = len(names.binding(target.id, target)) == 1
        return is_only and bool(places) and all(_gives_one(names, each, depth - 1) for each in places)
    return False


def _search(call: ast.expr, array: ast.expr) -> Candidate:
    text = short(array, 24)
    reason = f"{short(call)} goes through all of {text} for one value, each time."
    return Candidate(ALGORITHM, reason, ANY, _FINDING.format(array=text), kernels=True)


def _array_searched(names: Names, runs: Runs, node: ast.Compare | ast.BinOp) -> ast.expr | None:
    """What stays the same of the two sides of a comparison or a difference, if the other one does not."""
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right] if isinstance(node.op, ast.Sub) else []
    else:
        sides = [node.left, *node.comparators] if len(node.ops) == 1 else []
    found = {runs.operands(side): side for side in sides}
    array = found.get(Operands.SAME)
    other = found.get(Operands.OTHER)
    if array is None or other is None or not has_names(array) or names.kind(other) in ARRAYS:
        return None
    return None if _is_number(names, array) else array


def _is_number(names: Names, node: ast.expr | None, depth: int = MAX_STEPS) -> bool:
    """True for what is a single number as far as the file says: a level that arrays are compared with is no array."""
    if node is None or depth == 0:
        return False
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if isinstance(node, ast.UnaryOp):
        return _is_number(names, node.operand, depth - 1)
    if isinstance(node, ast.BinOp):
        return all(_is_number(names, side, depth - 1) for side in (node.left, node.right))
    if isinstance(node, ast.Call):
        axes = any(each.arg in ("axis", "keepdims") for each in node.keywords)
        of_python = (names.called(node) or "").partition(".")[0] in _GIVE_NUMBERS
        return of_python or (_name_of_function(names, node) in _REDUCTIONS and not axes)
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    values = names.values(node)
    if isinstance(node, ast.Name) and values == [None]:
        values = _given(names, node)
    return bool(values) and all(_is_number(names, value, depth - 1) for value in values)


def _given(names: Names, node: ast.Name) -> list[ast.expr | None]:
    """What the file's calls pass for a parameter, with its default where it is left out."""
    scope = names.module.scope(node)
    if not isinstance(scope, ast.FunctionDef) or node.id not in parameters_of(scope):
        return [None]
    owner = names.module.class_around(scope)
    called = owner.name if owner is not None and scope.name == "__init__" else scope.name
    values: list[ast.expr | None] = []
    for call in names.module.parent:
        name = (dotted(call.func) or "").rpartition(".")[2] if isinstance(call, ast.Call) else ""
        if isinstance(call, ast.Call) and name == called:
            # An object is made without its ``self``.
            made = ast.Call(ast.Attribute(call.func, called), call.args, call.keywords) if owner is not None else call
            given = given_arguments(scope, made)
            values.append(None if given is None else given.get(node.id, _default(scope, node.id)))
    return values or [None]


def _default(function: ast.FunctionDef, name: str) -> ast.expr | None:
    own = positional(function)
    defaults: dict[str, ast.expr | None] = dict(zip(reversed(own), reversed(function.args.defaults), strict=False))
    defaults |= {
        each.arg: value for each, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    }
    return defaults.get(name)


def _is_for_one(names: Names, call: ast.Call, operator: ast.cmpop) -> bool:
    """True if a search is for equal elements, or for the first or last one beyond a value."""
    if isinstance(operator, ast.Eq):
        return True
    if not isinstance(operator, ast.Gt | ast.GtE | ast.Lt | ast.LtE):
        return False
    around = names.module.parent.get(call)
    is_element = isinstance(around, ast.Subscript) and around.value is call and not isinstance(around.slice, ast.Slice)
    return _name_of_function(names, call) == "argmax" or is_element


def _is_distance(names: Names, node: ast.BinOp, search: ast.Call) -> bool:
    """True if a difference becomes a distance on the way to a search."""
    around: ast.AST = node
    for _ in range(MAX_OPERATIONS):
        around = names.module.parent.get(around, around)
        is_square = isinstance(around, ast.BinOp) and isinstance(around.op, ast.Pow)
        if is_square or (isinstance(around, ast.Call) and _name_of_function(names, around) in _DISTANCES):
            return True
        if around is search or isinstance(around, ast.stmt):
            break
    return False


def _calls_around(names: Names, node: ast.expr) -> list[ast.Call]:
    """The calls that get an expression, through other work and through names that stand for that alone."""
    calls: list[ast.Call] = []
    waiting: list[ast.AST] = [node]
    for _ in range(MAX_OPERATIONS):
        if not waiting:
            break
        around = names.module.parent.get(waiting.pop())
        if isinstance(around, ast.Call):
            calls.append(around)
        if isinstance(around, ast.Assign):
            target = around.targets[0]
            if isinstance(target, ast.Name) and len(names.binding(target.id, target)) == 1:
                waiting += _uses_of(names, target)
        elif isinstance(around, ast.expr) and not isinstance(around, ast.Subscript | ast.Lambda):
            waiting.append(around)
    return calls


def _uses_of(names: Names, target: ast.Name) -> list[ast.AST]:
    """The places where a name is read, in the scope that binds it."""
    scope = names.module.scope(target)
    return [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id == target.id and isinstance(each.ctx, ast.Load)
    ]


def _name_of_function(names: Names, call: ast.Call) -> str:
    """The last part of the name of a function or method."""
    function = names.called(call)
    if function is not None:
        return function.rpartition(".")[2]
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


MANY = 10
"""Elements: of fewer, a set is no faster."""
SEARCHING_LIST = re.compile(r"^(list|tuple)_?(contains|index|count)(_impl)?\b|^_?PySequence_(Contains|IterSearch)\b")
"""The interpreter's searches of lists and tuples."""


def searched_in_list(names: Names, runs: Runs, node: ast.expr) -> Iterator[Candidate]:
    """One value that is looked for in all of a list; that it is one is known by the native functions."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
        value, within = node.left, node.comparators[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        if node.func.attr not in ("index", "count"):
            return
        value, within = node.args[0], node.func.value
    else:
        return
    stays = runs.operands(within) in (Operands.SAME, Operands.OVERLAPPING)
    if stays and has_names(within) and not _is_short(names, within) and runs.operands(value) is Operands.OTHER:
        text = short(within, 24)
        reason = f"{short(node)} goes through {text} from its start for one value, each time."
        remedy = f"Keep a set of {text}, or a dict with the places of its elements: they are found without a search."
        yield Candidate(ALGORITHM, reason, SEARCHING_LIST, remedy)


def _is_short(names: Names, node: ast.expr) -> bool:
    """True for a name of a few elements that the file writes out."""
    values = names.values(node) if isinstance(node, ast.Name | ast.Attribute) else [node]
    few = [isinstance(each, ast.List | ast.Tuple) and len(each.elts) < MANY for each in values]
    return bool(few) and all(few)
