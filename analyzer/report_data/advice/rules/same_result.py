"""A rule about functions of the file that a loop calls with the same arguments, for the same result, in each round."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import PURE, PURE_METHODS, Names
from ....source_code.source import Function, LoopNode, body_of, names_in, short
from ..program import Finding, Program, Rule, time_figure
from .repeated import bound_in, depends_on_arguments, root

SAME_SHARE = 0.10
"""The part of the CPU time that such calls have, with all that they call, at the low end of its interval."""

MAX_DEPTH = 4
"""Functions of a file, each called by the one before, that are looked through."""

_ADDING = frozenset({"append", "extend", "add", "update", "setdefault", "sort", "insert"})
_NEW = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Constant, ast.Tuple, ast.BinOp)
_MAKES = frozenset({"list", "dict", "set", "sorted", "collections.Counter", "collections.defaultdict"})
_OUTSIDE = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.With, ast.Import, ast.Delete)


def same_result(program: Program) -> Iterator[Finding]:
    """Calls of a function of the file in a for loop that give the same each time, as nothing they see changes."""
    paths = program.profile.calls.tree.paths
    for file, names in program.files():
        module = names.module
        for function in module.tree.body:
            if not isinstance(function, ast.FunctionDef) or function.decorator_list:
                continue
            calls = [_use(each, names) for each in names.mentions.get(function.name, ())]
            if len(calls) != 1:
                continue  # which of several calls has the time is not known
            call = calls[0]
            loops = module.loops(call)
            if not isinstance(call, ast.Call) or not loops or not isinstance(loops[0], ast.For | ast.comprehension):
                continue
            if not _same(call, loops[0], names) or not _pure(function, names):
                continue
            share, low = program.facts.low(program.facts.cpu_below([(function.name, paths[file].replace("\\", "/"))]))
            if low < SAME_SHARE:
                continue
            yield Finding(
                share,
                f"{time_figure(share, share * program.profile.totals.cpu_s)} in “{function.name}”",
                f"{short(call)} gives the same in each round of the loop: nothing that it depends on changes there.",
                "call it once, before the loop",
                file,
                call.lineno,
                getattr(module.scope(call), "name", None),
            )


def _use(mention: ast.Name, names: Names) -> ast.AST:
    """The call of a name, or the name itself where it is mentioned otherwise."""
    above = names.module.parent.get(mention)
    return above if isinstance(above, ast.Call) and above.func is mention else mention


def _same(call: ast.Call, loop: LoopNode, names: Names) -> bool:
    """True if no argument is bound by the loop, and the loop has no effect on anything but its own names."""
    given = [*call.args, *(each.value for each in call.keywords)]
    bound = bound_in(loop, names)
    if not all(isinstance(each, ast.Constant) or root(each) not in (None, *bound) for each in given):
        return False
    around = names.module.parent[loop] if isinstance(loop, ast.comprehension) else loop
    arguments = {root(each) for each in given} - {None}
    parts = [around] if isinstance(around, ast.expr) else body_of(loop, names.module)
    if not _only_read(call, names):
        return False
    return all(_harmless(node, names, arguments, MAX_DEPTH) for part in parts for node in ast.walk(part))


def _only_read(call: ast.Call, names: Names) -> bool:
    """True if the loop does not change or keep the result: it takes from it, or binds it to a name that it reads."""
    above = names.module.parent[call]
    if isinstance(above, ast.Subscript) and above.value is call and isinstance(above.ctx, ast.Load):
        return True
    if isinstance(above, ast.BinOp | ast.Compare):
        return True
    if not isinstance(above, ast.Assign) or len(above.targets) != 1 or not isinstance(above.targets[0], ast.Name):
        return False
    name = above.targets[0]
    scope = names.module.scope(call)
    for node in ast.walk(scope):
        if not isinstance(node, ast.Name) or node.id != name.id or node is name:
            continue
        use = names.module.parent[node]
        read = isinstance(use, ast.BinOp | ast.Compare | ast.For | ast.comprehension | ast.FormattedValue)
        read |= isinstance(use, ast.Subscript) and isinstance(use.ctx, ast.Load)
        read |= isinstance(use, ast.Attribute) and use.attr in PURE_METHODS
        read |= isinstance(use, ast.Call) and names.called(use) in PURE
        if not isinstance(node.ctx, ast.Load) or not read:
            return False
    return True


def _pure(function: ast.FunctionDef, names: Names, depth: int = MAX_DEPTH) -> bool:
    """True if a function of the file depends on its arguments and on constants alone, and changes nothing else."""
    if depth == 0 or function.decorator_list or function.args.vararg or function.args.kwarg:
        return False
    given: set[str | None] = {
        each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    }
    own = names.bindings(function)
    for node in (each for statement in function.body for each in ast.walk(statement)):
        if not _harmless(node, names, given, depth):
            return False
        if isinstance(node, ast.For) and _stops_early(node, given):
            return False
        reads = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.Name) and reads and node.id not in own and not _constant(node, names):
            return False
    return True


def _stops_early(loop: ast.For, given: set[str | None]) -> bool:
    """True if a loop may leave an iterator that it was given half gone through: the next call goes on from there."""
    over = names_in(loop.iter)
    return bool(over & given) and any(isinstance(each, ast.Break | ast.Return) for each in ast.walk(loop))


def _constant(node: ast.Name, names: Names) -> bool:
    """True if a name from outside of a function always stands for the same: a constant, a function, a module."""
    if node.id in names.modules:
        return True
    scope = names.module.scope(node)
    bound = names.bindings(names.module.tree).get(node.id)
    if bound is None:  # a built-in, or a name of a comprehension or of a function around
        return True if not isinstance(scope, Function) else node.id in PURE or node.id in names.bindings(scope)
    if bound == [None]:
        return any(isinstance(each, ast.FunctionDef) and each.name == node.id for each in names.module.tree.body)
    # A name that a function declares as global has an unknown value here.
    values = names.binding(node.id, node)
    return len(values) == 1 and isinstance(values[0], ast.Constant)


def _harmless(node: ast.AST, names: Names, arguments: set[str | None], depth: int) -> bool:
    """True if a node changes nothing but new objects of the scope's own names, and calls nothing that may."""
    if isinstance(node, _OUTSIDE):
        return False
    if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return _new(node.value, names, arguments)
    if isinstance(node, ast.AugAssign):
        # += changes a list in place: of another name's object that is an effect.
        return not isinstance(node.target, ast.Name) or _made(node.target, names, arguments)
    if not isinstance(node, ast.Call):
        return True
    name = names.called(node)
    if name in _MAKES or name == "print" or depends_on_arguments(node, names):
        return True
    if isinstance(node.func, ast.Attribute) and name is None:
        return node.func.attr in _ADDING and _new(node.func.value, names, arguments)
    called = node.func.id if isinstance(node.func, ast.Name) else None
    mine = [each for each in names.module.tree.body if isinstance(each, ast.FunctionDef) and each.name == called]
    return (
        len(mine) == 1
        and names.bindings(names.module.tree).get(mine[0].name) == [None]
        and _pure(mine[0], names, depth - 1)
    )


def _new(node: ast.expr, names: Names, arguments: set[str | None]) -> bool:
    """True if what is changed is an object that the scope made, of a name of its own."""
    return isinstance(node, ast.Name) and _made(node, names, arguments)


def _made(node: ast.Name, names: Names, arguments: set[str | None]) -> bool:
    if node.id in arguments:
        return False
    scope = names.module.scope(node)
    values = names.bindings(scope).get(node.id, []) if not isinstance(scope, ast.Module) else []
    return bool(values) and all(
        isinstance(each, _NEW) or (each is not None and names.called(each) in _MAKES) for each in values
    )


RULES = (
    Rule(
        "same-each-round",
        "CPU time of functions with all that they call; the source of the function and of the loop, in one file",
        "10 % of the CPU time in a function with one call, which sees and changes nothing that the loop changes",
        same_result,
    ),
)
