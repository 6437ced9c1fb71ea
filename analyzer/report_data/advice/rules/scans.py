"""Rules about passes over a whole collection, or over a text by its characters, that a loop makes again and again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ....source_code.names import TEXT, Names
from ....source_code.source import dotted, parts_of, short
from ..program import Finding, Program, Rule, time_figure
from .repeated import Round, arguments, root, round_of, varies_by_round

SCAN_SHARE = 0.10
"""The part of the CPU time that such a pass has, at the low end of its interval."""

PYTHON_PART = 0.40
"""Where the interpreter has so much of a loop's time, what its calls do for each character is tiny."""

_CONSUMED = ("sum", "len", "list", "tuple", "set", "any", "all", "sorted", "next", "max", "min")
_CHANGES = frozenset(
    {
        *("append", "appendleft", "add", "extend", "insert", "setdefault", "update", "pop", "popleft", "popitem"),
        *("clear", "remove", "discard", "sort", "reverse"),
    }
)


@dataclass(frozen=True, slots=True)
class Scan:
    """A pass over a collection for the items that one value selects."""

    items: ast.expr
    part: ast.expr
    """The part of an item that is compared: ``note.counts``, ``row['city']``."""
    value: ast.expr
    is_member: bool
    """True of ``value in note.counts``, false of ``note.city == value``."""
    counts: bool
    node: ast.AST
    lines: range


def scan_again(program: Program) -> Iterator[Finding]:
    """Passes over a whole collection, one for each value of a loop, of a collection that the loop does not change."""
    shown: set[ast.AST] = set()
    for spot in program.spots:
        for scan in _scans(spot.names, spot.line.line):
            around = round_of(spot.names, scan.node) if scan.node not in shown else None
            if around is None or not _stays(scan, around, spot.names):
                continue
            if varies_by_round(spot.names, scan.value, around) is not True:
                continue
            if varies_by_round(spot.names, scan.items, around) is not False:
                continue
            lines = (each for each in program.facts.lines if each.file_id == spot.line.file_id)
            cpu_s = sum(each.cpu_s for each in lines if each.line in scan.lines)
            share, low = program.facts.low(cpu_s)
            if low < SCAN_SHARE:
                continue
            shown.add(scan.node)
            items, part, value = short(scan.items, 30), short(scan.part, 30), short(scan.value, 30)
            who = f"each call of “{around.through[0].name}”, in the" if around.through else "each round of the"
            yield spot.finding(
                f"All of “{items}” is gone through for {who} loop of line {around.line}, to find where"
                f" {f'{value} is in {part}' if scan.is_member else f'{part} is {value}'}.",
                f"one pass before the loop makes {_index(scan, part)}, and a look-up here finds the answer",
                time_figure(share, cpu_s),
                share,
            )
            break


def _index(scan: Scan, part: str) -> str:
    if scan.counts:
        return f"a collections.Counter of all that is in {part}" if scan.is_member else f"a Counter of {part}"
    return f"a dict from each value in {part} to its items" if scan.is_member else f"a dict from {part} to its items"


def _scans(names: Names, line: int) -> Iterator[Scan]:
    """The passes that a line is part of: comprehensions with one condition that a built-in function takes, or alone."""
    for node in names.module.expressions(line):
        if not isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp) or len(node.generators) != 1:
            continue
        generator, above = node.generators[0], names.module.parent.get(node)
        tests = generator.ifs
        consumer = names.called(above) if isinstance(above, ast.Call) else None
        if isinstance(node, ast.GeneratorExp) and consumer not in _CONSUMED:
            continue
        if consumer in ("any", "all", "next") or generator.is_async or len(tests) != 1 or not _plain(node):
            continue
        found = _selected(tests[0], generator.target)
        if found is not None and dotted(generator.iter) is not None:
            constant = isinstance(node.elt, ast.Constant)
            counts = consumer == "len" or (consumer == "sum" and constant)
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            yield Scan(generator.iter, *found, counts, above if consumer else node, lines)  # type: ignore[arg-type]
    for statement in names.module.statements.get(line, ()):
        loop = names.module.parent.get(statement) if isinstance(statement, ast.If) else statement
        if not isinstance(loop, ast.For) or len(loop.body) != 1 or not isinstance(loop.body[0], ast.If):
            continue
        test, leaves = loop.body[0], (ast.Break, ast.Return, ast.Yield, ast.Await)
        if test.orelse or loop.orelse or any(isinstance(each, leaves) for each in ast.walk(loop)):
            continue
        found = _selected(test.test, loop.target)
        if found is not None and dotted(loop.iter) is not None:
            lines = range(loop.lineno, test.body[0].lineno)
            yield Scan(loop.iter, *found, counts=False, node=loop, lines=lines)


def _plain(node: ast.expr) -> bool:
    """True if a comprehension calls nothing whose time would be its own."""
    return not any(isinstance(each, ast.Call | ast.Await) for each in parts_of(node))


def _selected(test: ast.expr, target: ast.expr) -> tuple[ast.expr, ast.expr, bool] | None:
    """The compared part of an item, the value and whether it is a member, of a test that one value selects by."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(target, ast.Name):
        return None
    left, right = test.left, test.comparators[0]
    if isinstance(test.ops[0], ast.In):
        pairs = [(right, left, True)]
    elif isinstance(test.ops[0], ast.Eq):
        pairs = [(left, right, False), (right, left, False)]
    else:
        return None
    for part, value, member in pairs:
        of_item = isinstance(part, ast.Attribute) or (
            isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant)
        )
        if not of_item or root(value) in (None, target.id):
            continue
        if isinstance(part.value, ast.Name) and part.value.id == target.id:  # type: ignore[attr-defined]
            return part, value, member
    return None


def _stays(scan: Scan, around: Round, names: Names) -> bool:
    """True if neither the loop nor what it calls in this file changes the collection, or what is compared."""
    watched = {dotted(scan.items) or ""} if isinstance(scan.items, ast.Name) else set()
    watched |= {f".{each.attr}" for each in (scan.items, scan.part) if isinstance(each, ast.Attribute)}
    module = names.module
    functions = [each for each in module.parent if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    changing = {each.name for each in functions if changed(each, watched)}
    loop = module.parent[around.loop] if isinstance(around.loop, ast.comprehension) else around.loop
    region = [loop, *around.through]
    called = {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for each in region
        for node in ast.walk(each)
        if isinstance(node, ast.Call)
    }
    # What a loop or a function binds is another collection each time.
    return not called & changing and not any(changed(each, watched) for each in region)


def changed(around: ast.AST, watched: set[str]) -> bool:
    """True if code binds, stores into or changes by a method what has one of these names, or ``.attributes``.

    Of ``[name]`` a change of its object counts, and not that it is bound.
    """
    for node in ast.walk(around):
        target: ast.AST | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
            target = _holder(node.func.value)
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = _holder(node.value)
        elif isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            target = node
        if isinstance(target, ast.Name) and target is not node and f"[{target.id}]" in watched:
            return True
        if isinstance(target, ast.Name) and target.id in watched:
            return True
        if isinstance(target, ast.Attribute) and f".{target.attr}" in watched:
            return True
    return False


def _holder(node: ast.expr) -> ast.expr:
    """The object that a chain of subscripts begins with: to change ``a[b][c]`` changes what ``a`` holds."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def characters(program: Program) -> Iterator[Finding]:
    """For loops over the characters of a text, whose bodies are interpreted for each one."""
    for file, names in program.files():
        lines = [each for each in program.facts.lines if each.file_id == file and each.cpu_s > 0]
        for loop in [each for each in names.module.parent if isinstance(each, ast.For)]:
            if not _over_characters(loop, names):
                continue
            inside = [each for each in lines if loop.lineno <= each.line <= (loop.end_lineno or loop.lineno)]
            cpu_s = sum(each.cpu_s for each in inside)
            share, low = program.facts.low(cpu_s)
            python_s = float(np.nansum([each.python_s for each in inside]))
            if low < SCAN_SHARE or python_s < PYTHON_PART * cpu_s:
                continue
            top = max(inside, key=lambda each: each.cpu_s)
            yield Finding(
                share,
                time_figure(share, cpu_s),
                f"The loop of lines {loop.lineno} to {loop.end_lineno} goes through a text one character at a time: the"
                " interpreter runs its body for each.",
                f"what does the whole text in native code (re.findall, split, translate, count){_kept(loop, names)}",
                file,
                top.line,
                program.facts.function(file, top.line),
            )


def _kept(loop: ast.For, names: Names) -> str:
    """The advice to keep results, for a loop that makes the result of a function of its text alone."""
    scope = names.module.scope(loop)
    if not isinstance(scope, ast.FunctionDef) or scope.decorator_list or len(scope.args.args) != 1:
        return ""
    own = names.bindings(scope)
    for node in ast.walk(scope):
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom):
            return ""
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return ""
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Name) and names.kind(node.value) is not None:
            return ""  # a list that callers may change
        if isinstance(node, ast.Return) and node.value is None:
            return ""
    returns = any(isinstance(each, ast.Return) for each in ast.walk(scope))
    if not returns or scope.args.args[0].arg not in own or round_of(names, scope.body[0]) is None:
        return ""
    return f"; functools.cache on “{scope.name}”, where the same texts come again"


def _over_characters(loop: ast.For, names: Names) -> bool:
    """True if what a loop goes through are certainly characters, by what its body does with each."""
    target, over = loop.target, loop.iter
    if isinstance(over, ast.Call) and names.called(over) == "enumerate" and isinstance(target, ast.Tuple):
        target, over = target.elts[-1], over.args[0] if over.args else over
    if isinstance(over, ast.Call) and names.called(over) == "reversed" and over.args:
        over = over.args[0]
    if not isinstance(target, ast.Name) or dotted(over) is None:
        return False
    if any(
        isinstance(each, ast.For | ast.While | ast.Await | ast.Yield) for each in ast.walk(loop) if each is not loop
    ):
        return False
    if dotted(over) in names.modules:
        return False
    ordinal = any(
        names.called(node) == "ord" and isinstance(node, ast.Call) and len(node.args) == 1 and _is(node.args[0], target)
        for node in ast.walk(loop)
    )
    return ordinal or _is_text(over, names)


def _is_text(over: ast.expr, names: Names) -> bool:
    """True if the source proves a text: by its kind, or as an argument that all calls in the file give one for."""
    if names.kind(over) == TEXT:
        return True
    given = arguments(names, over) if isinstance(over, ast.Name) else []
    return bool(given) and all(each is not None and names.kind(each) == TEXT for each in given)


def _is(node: ast.expr, target: ast.Name) -> bool:
    return isinstance(node, ast.Name) and node.id == target.id


RULES = (
    Rule(
        "scan-again",
        "CPU time by line; the loop, its pass over the collection, and what changes the collection, in one file",
        "10 % of the CPU time in passes that one value selects from, of a collection that stays the same meanwhile",
        scan_again,
    ),
    Rule(
        "by-characters",
        "CPU time by line, divided into Python and native code; the source proves that a text is gone through",
        "10 % of the CPU time in the loop, 40 % of that in the interpreter",
        characters,
    ),
)
