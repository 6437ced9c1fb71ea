"""Lines that matter, with the calls that have most of their time and the functions above them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts import Callee
from ..program import MOSTLY, Program, Spot
from . import verbs
from .rounds import Level, levels

LEAST = 0.15
"""The part of the CPU time, at the low end of its interval: what is less certain has to be worth a look."""

TRIVIAL = frozenset(
    {
        *(
            "len",
            "range",
            "print",
            "isinstance",
            "enumerate",
            "zip",
            "int",
            "float",
            "str",
            "bool",
            "abs",
            "min",
            "max",
        ),
        *("super", "getattr", "hasattr", "type", "id", "append", "items", "keys", "values", "format", "strip"),
    }
)


class Hot:
    """A line that matters, its calls that have most of its time, and the functions and loops above it."""

    def __init__(self, spot: Spot) -> None:
        self.spot = spot
        self.chain = spot.program.facts.callers(spot.line.file_id, spot.line.line)
        self.calls = _hot_calls(spot)

    def levels(self, node: ast.AST) -> list[Level]:
        """The chain of calls, seen from a node of the line."""
        return levels(self.spot.program, self.chain, node)

    def told_by(self, rules: frozenset[str] | None) -> bool:
        """True if one of these rules (None: of all) has a suggestion there."""
        everywhere = self.spot.program.told.items()
        told = {place for place, rule in everywhere if rules is None or rule in rules}
        if any((each.file, each.line) in told for each in self.chain):
            return True
        nodes = self.spot.module.statements.get(self.spot.line.line, [])
        scope = self.spot.module.scope(nodes[0]) if nodes else None
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            return (self.spot.line.file_id, self.spot.line.line) in told
        mine = range(scope.lineno, (scope.end_lineno or scope.lineno) + 1)
        return any(file == self.spot.line.file_id and line in mine for file, line in told)


def hot_lines(program: Program, silenced_by: frozenset[str] | None = None) -> Iterator[Hot]:
    """The lines that matter and have no suggestion yet (of some rules), nor has what called them."""
    for spot in program.spots:
        if spot.line.low >= LEAST:
            hot = Hot(spot)
            if hot.chain and not hot.told_by(silenced_by):
                yield hot


def _hot_calls(spot: Spot) -> list[ast.Call]:
    """The calls on a line that have most of its time, the outer ones first."""
    calls = [each for each in spot.expressions() if isinstance(each, ast.Call) and verbs.last(each)]
    known = [each for each in calls if _seconds_in(each, spot) >= MOSTLY * spot.line.cpu_s]
    if known:
        return known
    others = [each for each in calls if verbs.last(each) not in TRIVIAL]
    if len(others) != 1 or outside_s(spot) < MOSTLY * spot.line.cpu_s:
        return []
    # An operation outside of the call may have the time: matrix @ np.eye(n).
    inside = set(ast.walk(others[0]))
    operations = (each for each in spot.expressions() if isinstance(each, ast.BinOp | ast.Compare))
    return [] if any(each not in inside for each in operations) else others


def _seconds_in(call: ast.Call, spot: Spot) -> float:
    """CPU time that samples show in the function that a call names."""
    name = verbs.last(call)
    python = [each.total_s for each in spot.below.python if _is_of(each, name)]
    native = [
        each.total_s
        for each in spot.below.native
        if name in (each.name, each.name.rpartition("_")[2]) or each.name.endswith(f"_{name}")
    ]
    return max([*python, *native], default=0.0)


def _is_of(callee: Callee, name: str) -> bool:
    if callee.name in ("__init__", "__new__", "__call__"):
        return callee.qualified.split(".")[-2:-1] == [name]
    return callee.name == name


def outside_s(spot: Spot) -> float:
    """CPU time of a line that is not the interpreter's in the line itself."""
    mine = spot.below.packages.get("", 0.0)
    native = sum(each.own_s for each in spot.below.native if not _is_interpreter(each))
    return max(spot.line.cpu_s - mine, native)


def _is_interpreter(callee: Callee) -> bool:
    return callee.path.rpartition("/")[2].startswith(("libpython", "python"))


def package_of(spot: Spot) -> str:
    """The library that has most of a line's time; empty if none has, or it is the standard one."""
    theirs = {name: spent for name, spent in spot.below.packages.items() if name}
    return max(theirs, key=lambda each: theirs[each]) if theirs else ""
