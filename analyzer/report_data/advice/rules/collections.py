"""Rules about lists and conversions: searches from the front, and conversions that are the same each time round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ....source_code.names import BYTEARRAY, LIST, PURE, PURE_METHODS, TUPLE
from ....source_code.source import LoopNode, dotted, parts_of, short
from ..program import MOSTLY, Finding, Program, Rule, Spot, time_figure

MANY_SEARCHES = 0.25
"""The part of the CPU time that one search cannot have: to make the items of the list takes several times as long."""

_UNHASHABLE = ("list_richcompare", "dict_richcompare", "set_richcompare", "bytearray_richcompare", "array_richcompare")
_CONVERSIONS = frozenset(
    [f"numpy.{name}" for name in ("array", "asarray", "ascontiguousarray", "asfortranarray")]
    + ["list", "tuple", "set", "frozenset", "sorted", "bytes", "bytearray"]
)
_METHODS = frozenset({"astype", "tolist", "tobytes", "to_numpy", "decode", "encode", "copy", "flatten", "splitlines"})


def in_list(program: Program) -> Iterator[Finding]:
    """``value in values`` and loops that look for a key, where a list is searched from its front."""
    for spot in program.spots:
        if not spot.busy:
            continue
        for node in spot.expressions():
            searched = _searched(node)
            if searched is None or spot.names.kind(searched) not in (LIST, TUPLE):
                continue
            name, loop = dotted(searched), spot.loop(node)
            if name is None or not _stays(searched, name, loop, spot):
                continue
            looking = spot.below.native_s("list_contains", "tuplecontains", "tuple_contains")
            if looking < MOSTLY * spot.line.cpu_s or spot.below.native_s(*_UNHASHABLE) > 0:
                continue
            yield spot.finding(
                f"“in” goes through the list “{name}” from its front.",
                "keep a set of the same values beside it, or in place of it: “in” finds them at once",
            )
            break
    yield from _linear_searches(program)


@dataclass(frozen=True)
class Search:
    """A search for the first item of a list whose key is a value."""

    items: ast.expr
    key: str
    """The text of an item's key: ``link.code``, or ``link['code']``."""
    value: str
    lines: range
    node: ast.AST


def _linear_searches(program: Program) -> Iterator[Finding]:
    """Loops that go through a list from its front until the key of an item is a value."""
    shown: set[ast.AST] = set()
    for spot in program.spots:
        if not spot.busy:
            continue
        for search in _searches(spot):
            name, loop = dotted(search.items), spot.loop(search.node)
            if search.node in shown or name is None or spot.names.kind(search.items) not in (LIST, TUPLE):
                continue
            if not _stays(search.items, name, loop, spot) or spot.below.native_s(*_UNHASHABLE) > 0:
                continue
            lines = [each for each in program.facts.lines if each.file_id == spot.line.file_id]
            cpu_s = sum(each.cpu_s for each in lines if each.line in search.lines)
            share, low = program.facts.low(cpu_s)
            if loop is None and low < MANY_SEARCHES:
                continue
            shown.add(search.node)
            yield spot.finding(
                f"This goes through “{name}” from its front, until {search.key} is {search.value}.",
                f"keep a dict from {search.key} to the first item that has it, beside “{name}” or in place of it: one"
                " look-up finds the item",
                time_figure(share, cpu_s),
                share,
            )
            break


def _searches(spot: Spot) -> Iterator[Search]:
    """The searches that a line is part of."""
    for statement in spot.module.statements.get(spot.line.line, ()):
        loop = spot.module.parent.get(statement) if isinstance(statement, ast.If) else statement
        if isinstance(loop, ast.For) and len(loop.body) == 1 and isinstance(loop.body[0], ast.If):
            test = loop.body[0]
            found = _key_and_value(test.test, loop.target)
            if found is not None and not test.orelse and _ends(test.body):
                yield Search(loop.iter, *found, range(loop.lineno, test.body[0].lineno + 1), loop)
    for node in spot.expressions():
        made = node.args[0] if isinstance(node, ast.Call) and node.args else None
        called = spot.names.called(node)
        if not isinstance(node, ast.Call) or not isinstance(made, ast.GeneratorExp) or called not in ("next", "any"):
            continue
        generator = made.generators[0]
        if len(made.generators) > 1 or generator.is_async or not _alone(node, spot):
            continue
        tests, target = generator.ifs, generator.target
        if called == "any" and not tests:
            tests = [made.elt]
        elif called == "any" or not isinstance(made.elt, ast.Name):
            continue
        found = _key_and_value(tests[0], target) if len(tests) == 1 else None
        if found is not None:
            yield Search(generator.iter, *found, range(node.lineno, (node.end_lineno or node.lineno) + 1), node)


def _key_and_value(test: ast.expr, target: ast.expr) -> tuple[str, str] | None:
    """The key and the value of ``x.key == value`` or ``x[key] == value``, where x is the loop's name."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    if not isinstance(target, ast.Name):
        return None
    for key, value in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        of_item = isinstance(key, ast.Attribute) or (
            isinstance(key, ast.Subscript) and isinstance(key.slice, ast.Constant)
        )
        name = dotted(value)
        if of_item and isinstance(key.value, ast.Name) and key.value.id == target.id and name is not None:  # type: ignore[attr-defined]
            return None if name.partition(".")[0] == target.id else (short(key), name)
    return None


def _ends(body: list[ast.stmt]) -> bool:
    """True if statements only keep what was found, and leave the loop."""
    kept = all(isinstance(each, ast.Assign) for each in body[:-1])
    calls = any(isinstance(node, ast.Call | ast.Await | ast.Yield) for each in body for node in ast.walk(each))
    return kept and isinstance(body[-1], ast.Return | ast.Break) and not calls


def _searched(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
        return node.comparators[0]
    return None


def _stays(searched: ast.expr, name: str, loop: LoopNode | None, spot: Spot) -> bool:
    """True if the list is made once for several searches: else a set would be made for each one, too."""
    if loop is not None:
        return not _bound_in(loop, name)
    # Outside of a loop: one that the function itself did not make.
    return isinstance(searched, ast.Attribute) or name not in spot.names.bindings(spot.module.scope(searched))


def _bound_in(loop: LoopNode, name: str) -> bool:
    return any(
        isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load) and dotted(node) == name
        for node in ast.walk(loop)
    )


def list_front(program: Program) -> Iterator[Finding]:
    """``values.pop(0)`` and ``values.insert(0, value)``: all other values move, each time."""
    for spot in program.spots:
        if not spot.busy:
            continue
        for node in spot.expressions():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
                continue
            name, method, first = dotted(node.func.value), node.func.attr, node.args[0] if node.args else None
            at_front = isinstance(first, ast.Constant) and first.value == 0 and type(first.value) is int
            if name is None or not at_front or len(node.args) != {"pop": 1, "insert": 2}.get(method):
                continue
            moving = spot.below.native_s("list_pop") if method == "pop" else spot.below.native_s("list_insert")
            if moving < MOSTLY * spot.line.cpu_s:
                continue
            end = "popleft()" if method == "pop" else "appendleft()"
            yield spot.finding(
                f"{method}() at the front of the list “{name}” moves all of its other values, each time.",
                f"collections.deque, and its {end}",
            )
            break


def converted_in_loop(program: Program) -> Iterator[Finding]:
    """Conversions in a loop of something that the loop does not change, to something that it only reads."""
    for spot in program.spots:
        for node in spot.expressions():
            source = _converted(node, spot)
            loop = spot.loop(node) if source is not None else None
            if source is None or loop is None or isinstance(loop, ast.While):
                continue
            assert isinstance(node, ast.Call)
            if not (spot.copies or (spot.busy and _alone(node, spot))):
                continue
            if not all(spot.names.fixed(each, loop) for each in (source, *node.args)) or not _only_read(
                node, loop, spot
            ):
                continue
            yield spot.finding(
                f"{short(node)} gives the same each time round the loop.",
                "convert once, before the loop",
                spot.time_figure() if spot.busy else spot.copy_figure(),
            )
            break


def _converted(node: ast.expr, spot: Spot) -> ast.expr | None:
    """The argument of a conversion; None if the node is not one."""
    if not isinstance(node, ast.Call) or any(keyword.arg is None for keyword in node.keywords):
        return None
    if spot.names.called(node) in _CONVERSIONS:
        return node.args[0] if len(node.args) == 1 and isinstance(node.args[0], ast.Name | ast.Attribute) else None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        return node.func.value if isinstance(node.func.value, ast.Name | ast.Attribute) else None
    return None


def _alone(node: ast.Call, spot: Spot) -> bool:
    """True if the conversion is the only call of its statement: then the line's time is its own."""
    statement = spot.module.statement(node)
    calls = [each for each in parts_of(statement) if isinstance(each, ast.Call)] if statement is not None else []
    return all(each is node or spot.names.called(each) in ("len", "range") for each in calls)


def _only_read(node: ast.Call, loop: LoopNode, spot: Spot) -> bool:
    """True if a conversion's result is only read: used at once, or bound to a name that the loop does not change."""
    parent = spot.module.parent[node]
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        return _reads(parent.targets[0].id, parent, loop, spot)
    return _reading(node, spot)


def _reads(name: str, made: ast.Assign, loop: LoopNode, spot: Spot) -> bool:
    for node in ast.walk(loop):
        if not isinstance(node, ast.Name) or node.id != name or node is made.targets[0]:
            continue
        if not isinstance(node.ctx, ast.Load) or not _reading(node, spot):
            return False
    return True


def _reading(node: ast.expr, spot: Spot) -> bool:
    """True if the expression that uses an object neither changes it nor keeps it."""
    parent = spot.module.parent[node]
    if isinstance(parent, ast.Compare | ast.BinOp | ast.UnaryOp):
        return True
    if isinstance(parent, ast.Subscript):
        return parent.value is not node or isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.For | ast.comprehension):
        return parent.iter is node
    if isinstance(parent, ast.Call) and node in parent.args:
        called = spot.names.called(parent)
        return called in PURE or (
            (called or "").startswith("numpy.") and not any(keyword.arg == "out" for keyword in parent.keywords)
        )
    if isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Load):
        above = spot.module.parent.get(parent)
        return isinstance(above, ast.Call) and above.func is parent and parent.attr in PURE_METHODS
    return False


def bytes_of_slice(program: Program) -> Iterator[Finding]:
    """``bytes(buffer[a:b])`` of a bytearray, which copies the piece twice."""
    for spot in program.spots:
        if not (spot.copies or spot.busy):
            continue
        for node in spot.expressions():
            if not isinstance(node, ast.Call) or spot.names.called(node) != "bytes" or len(node.args) != 1:
                continue
            piece = node.args[0]
            if not isinstance(piece, ast.Subscript) or not isinstance(piece.slice, ast.Slice):
                continue
            if spot.names.kind(piece.value) != BYTEARRAY or not (spot.copies or _alone(node, spot)):
                continue
            yield spot.finding(
                f"{short(node)} copies the piece twice: into a bytearray, and from there into bytes.",
                f"bytes(memoryview({short(piece.value)})[…]), which copies once",
                spot.copy_figure() if spot.copies else spot.time_figure(),
            )
            break


RULES = (
    Rule(
        "in-list",
        "CPU time by line, with the interpreter's own functions below it by name",
        "5 % of the CPU time, most of it in searching; of a loop in no other loop 25 %: then it certainly ran often",
        in_list,
    ),
    Rule(
        "bytes-of-slice",
        "copies by line, or CPU time",
        "250 MB copied per second of CPU time and 10 % of all copies, or 5 % of the CPU time",
        bytes_of_slice,
    ),
    Rule(
        "list-front",
        "CPU time by line, with the native functions below it",
        "5 % of the CPU time, most of it in the list's own pop or insert",
        list_front,
    ),
    Rule(
        "converted-in-loop",
        "copies by line, or CPU time",
        "250 MB copied per second of CPU time and 10 % of all copies, or 5 % of it with no other call on the line",
        converted_in_loop,
    ),
)
