"""Rules about work on all values of which only a few are used: all are sorted, and the first ones taken."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import Names
from ....source_code.source import short
from ..program import MOSTLY, Finding, Program, Rule, Spot

SORT_SHARE = 0.10
"""The part of the CPU time at a line that sorts, at the low end of its interval."""

FEW = 100
"""More values than these are not a few."""

_SORTING = {"argsort": "argpartition", "sort": "partition"}
_NATIVE = ("PyArray_ArgSort", "PyArray_Sort", "array_argsort", "array_sort")


def sorted_for_few(program: Program) -> Iterator[Finding]:
    """``np.argsort(values)[:5]``, and the same with the result in a name that nothing else uses."""
    for spot in program.spots:
        if spot.line.low < SORT_SHARE or not spot.names.imports("numpy"):
            continue
        for node in spot.expressions():
            few = _few(node, spot.names) if isinstance(node, ast.Call) else None
            if few is None or _sorting_s(spot) < MOSTLY * spot.line.cpu_s:
                continue
            sorting, taken = few
            yield spot.finding(
                f"All values are sorted, and of the result only [{short(taken, 20)}] is used.",
                f"np.{_SORTING[sorting]}(), which puts these in front (or, of the last ones, behind) and leaves the"
                " others as they come; then sort those few",
            )
            break


def _sorting_s(spot: Spot) -> float:
    python = spot.below.python_s("/numpy/", *_SORTING)
    return max(python, max((each.total_s for each in spot.below.native if each.name in _NATIVE), default=0.0))


def _few(call: ast.Call, names: Names) -> tuple[str, ast.expr] | None:
    """The function that sorts, and the few that are taken of its result; None if it may be used otherwise."""
    called = names.called(call) or ""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    sorting = called.rpartition(".")[2] if called.startswith("numpy.") else method
    made_by_method = not called and sorting == "argsort" and not call.args
    if sorting not in _SORTING or not (called or made_by_method):
        return None
    if any(each.arg in ("axis", "order", "stable", None) for each in call.keywords) or len(call.args) > 1:
        return None
    above = names.module.parent.get(call)
    if isinstance(above, ast.Subscript) and above.value is call:
        uses = [above]
    elif isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(above.targets[0], ast.Name):
        uses = _uses(above.targets[0], names)
    else:
        return None
    if not uses or not all(_is_few(each.slice, names) for each in uses):
        return None
    return sorting, uses[0].slice


def _uses(target: ast.Name, names: Names) -> list[ast.Subscript]:
    """The parts that are taken of a name's only value; empty if it is used otherwise, or has several values."""
    if len(names.binding(target.id, target)) != 1:
        return []
    scope, uses = names.module.scope(target), list[ast.Subscript]()
    for each in names.mentions.get(target.id, ()):
        if each is target or names.module.scope(each) is not scope:
            continue
        above = names.module.parent.get(each)
        if not isinstance(above, ast.Subscript) or above.value is not each or not isinstance(above.ctx, ast.Load):
            return []
        uses.append(above)
    return uses


def _is_few(taken: ast.expr, names: Names) -> bool:
    """True of ``:5``, ``-5:`` and ``0``, and of names for such numbers."""
    if isinstance(taken, ast.Slice):
        if taken.step is not None:
            return False
        if taken.lower is None and taken.upper is not None:
            return _number(taken.upper, names, 1)
        return taken.upper is None and taken.lower is not None and _number(taken.lower, names, -1)
    return isinstance(taken, ast.Constant) and taken.value == 0


def _number(node: ast.expr, names: Names, sign: int) -> bool:
    """True of a small number of a sign, written out, or the only one that a name or an argument is given."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _number(node.operand, names, -sign)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and 0 < sign * node.value <= FEW
    if not isinstance(node, ast.Name):
        return False
    values = names.binding(node.id, node)
    if values == [None]:
        values = _given(node, names)
    return bool(values) and all(isinstance(each, ast.Constant) and _number(each, names, sign) for each in values)


def _given(name: ast.Name, names: Names) -> list[ast.expr | None]:
    """All that a function of the file is given for an argument; empty if its calls are not known."""
    function = names.module.scope(name)
    if not isinstance(function, ast.FunctionDef) or len(names.functions.get(function.name, ())) != 1:
        return []
    arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if name.id not in arguments or names.module.class_around(function) is not None:
        return []
    at, given = arguments.index(name.id), list[ast.expr | None]()
    defaults = dict(zip(arguments[::-1], function.args.defaults[::-1], strict=False))
    for mention in names.mentions.get(function.name, ()):
        call = names.module.parent.get(mention)
        if not isinstance(call, ast.Call) or call.func is not mention:
            return []
        if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
            return []
        by_name = {each.arg: each.value for each in call.keywords}
        given.append(call.args[at] if at < len(call.args) else by_name.get(name.id, defaults.get(name.id)))
    return given


RULES = (
    Rule(
        "sorted-for-few",
        "CPU time by line, with what numpy's sorting below it had; all uses of the result in the source",
        "10 % of the CPU time, half of the line's in sorting; at most 100 of the sorted values are used",
        sorted_for_few,
    ),
)
