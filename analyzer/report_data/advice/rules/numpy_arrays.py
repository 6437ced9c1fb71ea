"""Rules about arrays: loops over elements, arrays that are made anew to add to them, and mixed precision."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ....source_code.names import ARRAYS, DOUBLE, SINGLE, Names
from ....source_code.source import Module, dotted, names_in, parts_of, short, spelled
from ...numbers import percent, seconds
from ..facts import Line
from ..program import MOSTLY, SHARE, Finding, Program, Rule, Spot

PYTHON_PART = 0.40
"""Where the interpreter has so much of a loop's time, what native code does each time round is tiny."""

LOOP_SHARE = 0.10
"""The part of the CPU time that a whole loop has to have: more than a line, as the edit is larger."""

_JOINING = {f"numpy.{name}" for name in ("concatenate", "append", "vstack", "hstack", "row_stack", "column_stack")}


_OF_NUMBERS = ("abs", "min", "max", "int", "float", "round", "print", "len", "range")

_REDUCING = ("sum", "min", "max")
_ELEMENT = ("array_item", "PyArray_Scalar")
"""Functions of numpy that make a Python object of one element."""

ELEMENT_PART = 0.10
"""The part of a line's time that these have where a built-in function goes through an array."""


@dataclass(slots=True)
class ElementLoop:
    """A loop that counts up to the size of an array; ``elements`` are its lines that index numbers by its counters.

    ``certain`` says that single elements are meant: an index has counters of two loops, and no slice.
    """

    first: int
    last: int
    elements: set[int] = field(default_factory=set)
    certain: bool = False
    recurrent: bool = False
    """True if an element is made of an earlier one of the same array: then no expression does it."""


def element_by_element(program: Program) -> Iterator[Finding]:
    """Loops that go through arrays one element at a time, with all the time of their lines."""
    by_file: dict[int, list[Line]] = {}
    for line in program.facts.lines:
        if line.cpu_s > 0:
            by_file.setdefault(line.file_id, []).append(line)
    for file, lines in by_file.items():
        if program.facts.low(sum(line.cpu_s for line in lines))[1] < LOOP_SHARE:
            continue
        names = program.names(file)
        if names is None or not names.imports("numpy", "pandas", "torch"):
            continue
        for loop in _outermost(names.module, names):
            inside = [line for line in lines if loop.first <= line.line <= loop.last]
            cpu = sum(line.cpu_s for line in inside)
            share, low = program.facts.low(cpu)
            if not low >= LOOP_SHARE:
                continue
            python = float(np.nansum([line.python_s for line in inside]))
            tiny = python >= PYTHON_PART * cpu and any(line.line in loop.elements for line in inside)
            if not (loop.certain or tiny):
                continue
            top = max(inside, key=lambda line: line.cpu_s)
            yield Finding(
                share,
                f"{percent(share)} % of the CPU time ({seconds(cpu)})",
                f"The loop of lines {loop.first} to {loop.last} goes through an array one element at a time.",
                "each element needs one before it, so compile the loop (Numba, Cython), or look for a library's filter"
                if loop.recurrent
                else "an expression over the whole array, which does the same in native code",
                file,
                top.line,
                program.facts.function(file, top.line),
            )


def _outermost(module: Module, names: Names) -> Iterator[ElementLoop]:
    """Loops that count and index, without those inside of others."""
    waiting: list[ast.AST] = [module.tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.For) and _counts(node, names):
            yield _loop(node, names)
        else:
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _loop(outer: ast.For, names: Names) -> ElementLoop:
    loop = ElementLoop(outer.lineno, outer.end_lineno or outer.lineno)
    counted_by = _counters(outer)
    answers: dict[ast.stmt, bool] = {}
    stored = {
        spelled(node.value)
        for node in ast.walk(outer)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    } - {None}
    for node in ast.walk(outer):
        if not isinstance(node, ast.Subscript):
            continue
        used = names_in(node.slice)
        by = len(set().union(*(counted_by.get(name, ()) for name in used)))
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        sliced = any(isinstance(part, ast.Slice) for part in (node.slice, *parts))
        if by and not sliced and _as_number(names.module.statement(node), names, answers):
            loop.elements.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        loop.recurrent |= isinstance(node.ctx, ast.Load) and _earlier(node) and spelled(node.value) in stored
        loop.certain |= by >= 2 and bool(parts) and not any(isinstance(part, ast.Slice) for part in parts)
    return loop


def _as_number(statement: ast.stmt | None, names: Names, answers: dict[ast.stmt, bool]) -> bool:
    """True if a statement calls only functions of numbers. ``answers`` caches the results by statement."""
    if statement is None:
        return False
    if statement not in answers:
        called = (names.called(node) or "" for node in parts_of(statement) if isinstance(node, ast.Call))
        answers[statement] = all(name in _OF_NUMBERS or name.startswith("math.") for name in called)
    return answers[statement]


def _counters(outer: ast.For) -> dict[str, list[int]]:
    """The names that count in a loop and those inside of it, each with the first two loops (numbers) that it counts."""
    counted_by: dict[str, list[int]] = {}
    for number, node in enumerate(ast.walk(outer)):
        if isinstance(node, ast.For) and _is_range(node):
            for name in names_in(node.target):
                loops = counted_by.setdefault(name, [])
                if len(loops) < 2:
                    loops.append(number)
    return counted_by


def _earlier(node: ast.Subscript) -> bool:
    """True if an index has something subtracted: ``a[i - 1]``."""
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) for part in ast.walk(node.slice))


def _is_range(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"


def _counts(loop: ast.For, names: Names) -> bool:
    """True if a loop counts up to the size of an array."""
    if not _is_range(loop):
        return False
    for node in ast.walk(loop.iter):
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "size"):
            return True
        if (
            isinstance(node, ast.Call)
            and names.called(node) == "len"
            and node.args
            and names.kind(node.args[0]) in ARRAYS
        ):
            return True
    return False


def _any_array(nodes: list[ast.expr], names: Names) -> bool:
    return any(names.kind(each) in ARRAYS for each in nodes)


def array_grown_in_loop(program: Program) -> Iterator[Finding]:
    """Arrays and frames that are made anew, with all that is in them, for each piece that is added."""
    for spot in program.spots:
        for statement in spot.module.statements.get(spot.line.line, ()):
            name = _grown(statement, spot.names)
            if name is None or not isinstance(statement, ast.Assign):
                continue
            loop = spot.loop(statement.value)
            if loop is None or not spot.names.grows_only(name, loop, statement):
                continue
            joins = spot.names.called(statement.value) or "concat"
            frame = joins.startswith("pandas")
            instead = (
                f"append the parts to a list, and call {joins.rpartition('.')[2]} once after the loop"
                if frame or not joins.endswith(".append")
                else "append the parts to a list, and make one array of it after the loop"
            )
            yield spot.finding(
                f"“{name}” is copied whole each time something is joined to it.",
                instead,
                spot.time_figure() if spot.busy else spot.copy_figure(),
                spot.line.share if spot.busy else _copied_share(spot),
            )
            break


def _copied_share(spot: Spot) -> float:
    whole = spot.program.profile.totals.copied_bytes
    return SHARE * spot.line.copied_bytes / whole if whole else 0.0


def _grown(statement: ast.stmt, names: Names) -> str | None:
    """The name that a statement makes anew of itself and more, by joining arrays or frames."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    name, value = dotted(statement.targets[0]), statement.value
    if name is None or not isinstance(value, ast.Call) or not value.args:
        return None
    called = names.called(value)
    if called not in _JOINING and called != "pandas.concat":
        return None
    first = value.args[0]
    parts = first.elts if isinstance(first, ast.List | ast.Tuple) else value.args[:1]
    return name if any(dotted(part) == name for part in parts) else None


def mixed_precision(program: Program) -> Iterator[Finding]:
    """Products of a 32-bit with a 64-bit array: the smaller one is converted whole each time."""
    for spot in program.spots:
        if not spot.busy:
            continue
        for node in spot.expressions():
            pair = _product(node, spot.names)
            if pair is None:
                continue
            kinds = [spot.names.kind(each) for each in pair]
            loop = spot.loop(node)
            if sorted(map(str, kinds)) != sorted((SINGLE, DOUBLE)) or loop is None:
                continue
            converted = pair[kinds.index(SINGLE)]
            if not spot.names.fixed(converted, loop) or spot.part(_numeric(spot)) < MOSTLY:
                continue
            text = short(converted)
            yield spot.finding(
                f"{text} is float32 and the other factor float64: {text} is converted whole each time round.",
                "give both the same dtype before the loop",
            )
            break


def _product(node: ast.expr, names: Names) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if isinstance(node, ast.Call) and names.called(node) in ("numpy.dot", "numpy.matmul") and len(node.args) == 2:
        return node.args[0], node.args[1]
    return None


def _numeric(spot: Spot) -> float:
    """CPU time in native code below a line."""
    return max(0.0, spot.line.cpu_s - float(np.nan_to_num(spot.line.python_s)))


def builtin_of_array(program: Program) -> Iterator[Finding]:
    """``sum(values)``, ``min`` and ``max`` of Python, which make an object of each element of an array."""
    for spot in program.spots:
        if not spot.busy or not spot.names.imports("numpy"):
            continue
        for node in spot.expressions():
            called = spot.names.called(node)
            if called not in _REDUCING or not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
                continue
            values = node.args[0]
            if not _only_call(node, spot) or not _is_array(values, spot):
                continue
            moves = _moves(values, spot)
            if not moves and (spot.loop(node) is not None or spot.module.scope(node) is not spot.module.tree):
                continue  # of a few elements, again and again, the built-in function is the faster one
            whole = f"numpy.sum({short(values)}, axis=0)" if called == "sum" else f"{short(values)}.{called}()"
            windows = f"numpy.lib.stride_tricks.sliding_window_view(…).{called}(axis=-1), all windows in one expression"
            faster = "; faster still are differences of one numpy.cumsum()" if called == "sum" else ""
            yield spot.finding(
                f"The built-in {called}() makes a Python object of each element of the array"
                f"{', in every window that it is part of' if moves else ''}.",
                f"{windows}{faster}" if moves else f"{whole}, which stays in native code",
            )
            break


def _only_call(node: ast.Call, spot: Spot) -> bool:
    """True if the other calls of the statement take no time."""
    statement = spot.module.statement(node)
    calls = [each for each in parts_of(statement) if isinstance(each, ast.Call)] if statement is not None else []
    return all(each is node or spot.names.called(each) in ("len", "range", "float", "int", "print") for each in calls)


def _is_array(values: ast.expr, spot: Spot) -> bool:
    """True if an expression is an array: by the source, or as elements were taken out of one at the line."""
    if isinstance(values, ast.Subscript) and not isinstance(values.slice, ast.Slice):
        return False  # a row of a table, or an element that may be anything
    if not isinstance(values, ast.Name | ast.Attribute | ast.Subscript):
        return False
    kind = spot.names.kind(values)
    if kind is not None:
        return kind in ARRAYS
    return spot.part(spot.below.native_s(*_ELEMENT)) >= ELEMENT_PART


def _moves(values: ast.expr, spot: Spot) -> bool:
    """True if an expression is a slice that a loop's counter moves on by one element."""
    loop = spot.loop(values)
    part = values.slice if isinstance(values, ast.Subscript) else None
    if not isinstance(loop, ast.For | ast.comprehension) or not isinstance(loop.target, ast.Name):
        return False
    if not isinstance(part, ast.Slice) or part.lower is None or part.upper is None or part.step is not None:
        return False
    by_one = isinstance(loop.iter, ast.Call) and spot.names.called(loop.iter) == "range" and len(loop.iter.args) < 3
    if not by_one or spot.names.fixed(part.lower, loop) or not spot.names.fixed(values.value, loop):  # type: ignore[attr-defined]
        return False
    ends = list(ast.walk(part.upper))
    counted = any(isinstance(each, ast.Name) and each.id == loop.target.id for each in ends)
    return counted and not any(isinstance(each, ast.Subscript | ast.Call | ast.Mult) for each in ends)


RULES = (
    Rule(
        "builtin-of-array",
        "CPU time by line, the source, and numpy's functions below the line by name where the source proves no array",
        "5 % of the CPU time at a line that calls nothing else, of a moving window, or once in a module",
        builtin_of_array,
    ),
    Rule(
        "element-by-element",
        "CPU time by line; the source imports numpy, pandas or torch",
        "10 % of the CPU time in the loop: with less the edit is not worth it",
        element_by_element,
    ),
    Rule(
        "array-grown-in-loop",
        "CPU time or copies by line",
        "5 % of the CPU time, or 250 MB copied per second of CPU time and 10 % of all copies",
        array_grown_in_loop,
    ),
    Rule(
        "mixed-precision",
        "CPU time by line, both arrays made in the same file with a dtype",
        "5 % of the CPU time, most of it in native code",
        mixed_precision,
    ),
)
