"""A rule about figures of matplotlib: an object of the figure for each point or line."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..program import MOSTLY, Finding, Program, Rule, Spot
from .faster_forms import varies

PLOT_SHARE = 0.10
"""The part of the CPU time at a line that adds to a figure, at the low end of its interval."""

LEAST_S = 0.2
"""Seconds of a line below which a handful of curves may be all that it adds."""

_MARKERS = frozenset(".,ov^<>12348spP*hH+xXDd|_")
_NO_LINE = frozenset({"", " ", "none", "None"})


def added_one_by_one(program: Program) -> Iterator[Finding]:
    """``axes.plot(row.x, row.y, "o")`` and ``scatter`` in a loop, of values of the round."""
    for spot in program.spots:
        if (
            spot.line.low < PLOT_SHARE
            or spot.line.cpu_s < LEAST_S
            or not spot.line.python_s >= MOSTLY * spot.line.cpu_s
        ):
            continue
        for node in spot.expressions():
            if not isinstance(node, ast.Call) or not _adds(node, spot):
                continue
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if spot.below.python_s("/matplotlib/axes/", method) >= MOSTLY * spot.line.cpu_s:
                points = method == "scatter" or _marks(node)
                thing, instead = (
                    ("point", "one call for all: scatter(xs, ys, c=values), or plot(xs, ys, 'o') if all look the same")
                    if points
                    else (
                        "line",
                        "one object for all: axes.add_collection(LineCollection(lines)), and axes.autoscale()",
                    )
                )
                yield spot.finding(
                    f"{method}() makes an object of the figure for each {thing}, which is then drawn by itself.",
                    instead,
                )
                break


def _adds(node: ast.Call, spot: Spot) -> bool:
    """True if each round of a loop adds its own values to the same axes, and has no name in the legend for them."""
    loop = spot.loop(node)
    if loop is None or isinstance(loop, ast.While) or not isinstance(spot.module.parent.get(node), ast.Expr):
        return False
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("plot", "scatter") or len(node.args) < 2:
        return False
    if varies(node.func.value, loop, spot) or any(isinstance(each, ast.Starred) for each in node.args):
        return False
    if any(each.arg in ("label", "data", None) for each in node.keywords):
        return False
    return all(varies(each, loop, spot) for each in node.args[:2])


def _marks(node: ast.Call) -> bool:
    """True if ``plot`` is asked for markers without lines."""
    if len(node.args) > 2:
        form = node.args[2].value if isinstance(node.args[2], ast.Constant) else None
        return isinstance(form, str) and "-" not in form and ":" not in form and bool(_MARKERS & set(form))
    given = {each.arg: each.value.value for each in node.keywords if isinstance(each.value, ast.Constant)}
    single = all(isinstance(each, ast.List) and len(each.elts) == 1 for each in node.args)
    return "marker" in given and (single or given.get("linestyle", given.get("ls")) in _NO_LINE)


RULES = (
    Rule(
        "added-one-by-one",
        "CPU time by line, with what matplotlib's function below it had; the call and its loop in the source",
        "10 % of the CPU time and 0.2 s, half of it in Python code; values of the round, added to the same axes",
        added_one_by_one,
    ),
)
