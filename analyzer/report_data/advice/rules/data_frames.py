"""Rules about pandas: rows that are made one by one, and columns that are looked up again and again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.source import LoopNode, dotted, short
from ..program import MOSTLY, Finding, Program, Rule, Spot

BEGINNING = 0.10
"""The part of the time of iterrows() that may go into the values of the table as a whole, once for each loop."""

_PANDAS = ("pandas", "numpy")


def _in_pandas(spot: Spot) -> bool:
    """True if most of a line's time is spent in pandas."""
    packages = spot.below.packages
    return spot.part(sum(packages.get(name, 0.0) for name in _PANDAS)) >= MOSTLY


def apply_rows(program: Program) -> Iterator[Finding]:
    """``frame.apply(function, axis=1)``, whose time goes into making rows."""
    for spot in program.spots:
        if not spot.busy or not spot.names.imports("pandas"):
            continue
        for node in spot.expressions():
            if isinstance(node, ast.Call) and _is_apply(node) and spot.below.python_s("/pandas/core/apply.py"):
                if not _in_pandas(spot):
                    continue
                yield spot.finding(
                    "apply(axis=1) makes a Series for each row and calls a Python function with it.",
                    "write the calculation with whole columns, or go through zip() of the columns that it needs",
                )
                break


def _is_apply(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "apply":
        return False
    axis = next((keyword.value for keyword in call.keywords if keyword.arg == "axis"), None)
    return isinstance(axis, ast.Constant) and axis.value in (1, "columns")


def iterrows(program: Program) -> Iterator[Finding]:
    """Loops over ``frame.iterrows()``."""
    for spot in program.spots:
        if not spot.busy or not spot.names.imports("pandas"):
            continue
        called = any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "iterrows"
            for node in spot.expressions()
        )
        if called and _many_rows(spot) and spot.below.python_s("/pandas/core/", "iterrows") >= MOSTLY * spot.line.cpu_s:
            yield spot.finding(
                "iterrows() makes a Series for each row.",
                "write the calculation with whole columns, or go through itertuples(), which makes plain tuples",
            )


def _many_rows(spot: Spot) -> bool:
    """True if rows have the time, not the beginning of each loop: of a few rows no form is much faster."""
    return spot.below.python_s("/pandas/core/frame.py", "values") <= BEGINNING * spot.line.cpu_s


def chained_indexing(program: Program) -> Iterator[Finding]:
    """``table[a][b][i]`` in a loop, where ``table[a][b]`` is the same each time round."""
    for spot in program.spots:
        if not (spot.busy or spot.copies) or not spot.names.imports("pandas"):
            continue
        for node in spot.expressions():
            if not isinstance(node, ast.Subscript) or isinstance(spot.module.parent.get(node), ast.Subscript):
                continue
            loop = spot.loop(node)
            prefix = None if loop is None else _fixed_part(node, spot, loop)
            if prefix is None or not _looked_up(spot) >= MOSTLY * spot.line.cpu_s or not _in_pandas(spot):
                continue
            yield spot.finding(
                f"{short(prefix)} is the same each time round the loop, and pandas looks it up each time.",
                f"column = {short(prefix)} before the loop, and index that in it",
                spot.time_figure() if spot.busy else spot.copy_figure(),
            )
            break


def _looked_up(spot: Spot) -> float:
    return spot.below.python_s("/pandas/core/", "__getitem__")


def _fixed_part(node: ast.Subscript, spot: Spot, loop: LoopNode) -> ast.expr | None:
    """The longest part of a chain of subscripts, not all of it, that a loop does not change."""
    part = node.value
    if spot.names.fixed(node.slice, loop):
        return None
    while isinstance(part, ast.Subscript):
        if spot.names.fixed(part, loop):
            base: ast.expr = part
            while isinstance(base, ast.Subscript):
                base = base.value
            return part if dotted(base) is not None else None
        part = part.value
    return None


RULES = (
    Rule(
        "apply-rows",
        "CPU time by line, with what pandas' own functions below it had",
        "5 % of the CPU time, most of it in pandas: not in the function that is applied",
        apply_rows,
    ),
    Rule(
        "iterrows",
        "CPU time by line, with what pandas' own functions below it had",
        "5 % of the CPU time, most of it in iterrows, and there in making rows",
        iterrows,
    ),
    Rule(
        "chained-indexing",
        "CPU time by line, with what pandas' own functions below it had",
        "5 % of the CPU time, most of it in pandas' __getitem__",
        chained_indexing,
    ),
)
