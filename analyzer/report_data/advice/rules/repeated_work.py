"""Rules about functions that answer the same questions again by recursion, and lists that are sorted again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from ....source_code.names import Names
from ....source_code.source import dotted, short
from ..general.rounds import has_effects
from ..program import MOSTLY, Finding, Program, Rule, time_figure

RECURSIVE_SHARE = 0.20
"""The part of the CPU time in a function with its own calls, at the low end of its interval."""

SORT_SHARE = 0.10


def recursive_again(program: Program) -> Iterator[Finding]:
    """Functions that call themselves at several places with numbers next to their own: the same ones come again."""
    for file, names in program.files():
        for function in [each for each in names.module.parent if isinstance(each, ast.FunctionDef)]:
            own = _branches(function, names)
            if own is None or function.decorator_list or has_effects(function, names):
                continue
            lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
            own_lines = [each for each in program.facts.lines if each.file_id == file and each.line in lines]
            spent = sum(each.cpu_s for each in own_lines)
            share, low = program.facts.low(spent)
            if low < RECURSIVE_SHARE:
                continue
            yield Finding(
                share,
                time_figure(share, spent),
                f"“{function.name}” calls itself at {own} places with numbers next to its own: most answers are"
                " calculated again and again.",
                "@functools.cache on the function, if its arguments can be hashed (else with the indexes alone as"
                " arguments); or a table that a loop fills",
                file,
                max(own_lines, key=lambda each: each.cpu_s).line,
                function.name,
            )


def _branches(function: ast.FunctionDef, names: Names) -> int | None:
    """The number of calls of itself, all with its own arguments, some a number less or more; None if that is not so.

    None too if one run makes only one of the calls, or if the function may keep what it found. What divides its
    argument, or goes down a tree, does not come to the same place twice.
    """
    parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    calls = [each for each in ast.walk(function) if isinstance(each, ast.Call) and _calls(each, function.name)]
    steps: dict[ast.Call, tuple[tuple[str, int], ...]] = {}
    for call in calls:
        if call.keywords or any(isinstance(each, ast.Starred) for each in call.args):
            return None
        step = [_step(each, parameters) for each in call.args]
        if any(each is None for each in step):
            return None
        steps[call] = tuple(each for each in step if each is not None)
    if not all(any(by for _, by in step) for step in steps.values()):
        return None
    if not any(steps[one] != steps[other] and _both_run(one, other, names) for one, other in combinations(calls, 2)):
        return None
    if any(
        isinstance(each, ast.Subscript | ast.Attribute) and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
    ):
        return None
    asks = (each for each in ast.walk(function) if isinstance(each, ast.Compare))
    if any(isinstance(op, ast.In | ast.NotIn) for each in asks for op in each.ops):
        return None
    return len(calls)


def _both_run(one: ast.AST, other: ast.AST, names: Names) -> bool:
    """True if one run of a function comes to both of two nodes: in one expression, or in statements of one block."""
    parent = names.module.parent

    def above(node: ast.AST) -> list[ast.AST]:
        chain = [node]
        while not isinstance(chain[-1], ast.FunctionDef):
            chain.append(parent[chain[-1]])
        return chain

    ones, others = above(one), above(other)
    number = next(n for n, each in enumerate(ones) if each in others)
    common, first, second = ones[number], ones[number - 1], others[others.index(ones[number]) - 1]
    if isinstance(common, ast.expr):
        return not isinstance(common, ast.IfExp | ast.BoolOp)
    blocks = [block for name in ("body", "orelse") if isinstance(block := getattr(common, name, None), list)]
    block = next((each for each in blocks if first in each and second in each), None)
    if block is None:
        return False
    # What ends the function in between leaves one of them out.
    start, end = sorted((block.index(first), block.index(second)))
    between = block[start:end]
    return bool(between) and not any(isinstance(each, ast.Return) for part in between for each in ast.walk(part))


def _calls(call: ast.Call, name: str) -> bool:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr == name and isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
    return isinstance(call.func, ast.Name) and call.func.id == name


def _step(given: ast.expr, parameters: list[str]) -> tuple[str, int] | None:
    """A parameter that is handed on, and what is added to it; None of anything else."""
    if isinstance(given, ast.Name):
        return (given.id, 0) if given.id in parameters else None
    if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Add | ast.Sub):
        by = given.right.value if isinstance(given.right, ast.Constant) else None
        if isinstance(given.left, ast.Name) and given.left.id in parameters and type(by) is int and by:
            return given.left.id, by if isinstance(given.op, ast.Add) else -by
    return None


def sorted_again(program: Program) -> Iterator[Finding]:
    """``values.sort()`` in a loop that adds to the list or takes from it: it was in order but for one."""
    for spot in program.spots:
        if spot.line.low < SORT_SHARE:
            continue
        for node in spot.expressions():
            name = _sorted(node, spot.names)
            loop = None if name is None else spot.loop(node)
            if name is None or loop is None or isinstance(loop, ast.comprehension):
                continue
            added, taken = _changes(loop, name)
            sorting = spot.below.native_s("list_sort", "list_sort_impl", "sorted", "builtin_sorted")
            if not added or sorting < MOSTLY * spot.line.cpu_s:
                continue
            yield spot.finding(
                f"“{name}” is sorted again in each round of the loop, for what the round added to it.",
                "heapq.heappush() and heappop(), which keep the smallest at hand (with negated keys the largest)"
                if taken
                else "bisect.insort(), which puts each value into its place; or sort once, after the loop",
            )
            break


def _sorted(node: ast.AST, names: Names) -> str | None:
    """The list that a node sorts: ``values.sort()``, or ``values = sorted(values)``."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "sort" and not node.args:
        return dotted(node.func.value)
    statement = names.module.parent.get(node)
    if names.called(node) == "sorted" and node.args and isinstance(statement, ast.Assign):
        name = dotted(node.args[0])
        return name if name is not None and [dotted(each) for each in statement.targets] == [name] else None
    return None


def _changes(loop: ast.AST, name: str) -> tuple[bool, bool]:
    """True if a loop adds single values to a list, and if it takes them; False, False if it does anything else."""
    added = taken = False
    for node in ast.walk(loop):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if dotted(node.func.value) != name:
            continue
        if node.func.attr == "append":
            added = True
        elif node.func.attr == "pop":
            taken = True
        elif node.func.attr in ("extend", "clear", "insert", "remove"):
            return False, False
    # An inner loop that fills the list anew leaves nothing in order.
    inner = (each for each in ast.walk(loop) if isinstance(each, ast.For | ast.While) and each is not loop)
    if any(_changes(each, name)[0] for each in inner):
        return False, False
    begun = (each for each in ast.walk(loop) if isinstance(each, ast.Assign))
    if any(dotted(target) == name and isinstance(each.value, ast.List) for each in begun for target in each.targets):
        return False, False
    return added, taken


def lists_summed(program: Program) -> Iterator[Finding]:
    """``sum(lists, [])``: each addition copies all that was joined so far."""
    for spot in program.spots:
        if spot.line.low < SORT_SHARE:
            continue
        for node in spot.expressions():
            if not isinstance(node, ast.Call) or spot.names.called(node) != "sum":
                continue
            given = [*node.args[1:], *(each.value for each in node.keywords if each.arg == "start")]
            empty = len(given) == 1 and isinstance(given[0], ast.List | ast.Tuple) and not given[0].elts
            if empty and spot.below.native_s("builtin_sum", "sum") >= MOSTLY * spot.line.cpu_s:
                kind = "list" if isinstance(given[0], ast.List) else "tuple"
                yield spot.finding(
                    f"sum() of {kind}s makes a new {kind} for each one, and copies all that was joined so far.",
                    f"{kind}(itertools.chain.from_iterable({short(node.args[0], 30)})), which copies each once",
                )
                break


RULES = (
    Rule(
        "lists-summed",
        "CPU time by line, with the interpreter's own functions below it by name",
        "10 % of the CPU time, most of it in sum(), which begins with an empty list",
        lists_summed,
    ),
    Rule(
        "recursive-again",
        "CPU time by line; the function's calls of itself in the source",
        "20 % of the CPU time in a function without effects that calls itself with two different steps",
        recursive_again,
    ),
    Rule(
        "sorted-again",
        "CPU time by line, with the interpreter's own functions below it by name",
        "10 % of the CPU time, most of it in sorting a list to which the loop adds single values",
        sorted_again,
    ),
)
