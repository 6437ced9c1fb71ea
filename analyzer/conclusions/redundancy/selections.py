"""Rules for the smallest or largest of what is left: a loop that goes through all of it to take one element off."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ...source_code.names import Names
from ...source_code.source import LoopNode, body_of, names_in, short, spelled
from .candidates import ALGORITHM, ANY, Candidate
from .kernels import ITERATING

_CHOOSING = frozenset({"min", "max"})
_TAKING_OFF = frozenset({"remove", "discard", "pop"})
_SORT = re.compile(r"^(list_sort|builtin_sorted|binarysort|count_run|merge_)")
HEAP = (
    "Keep a heap (heapq): it gives the smallest element without a search, and one that is out of date is left in it "
    "until it comes."
)
SORTED = "Sort once, and add by bisect.insort; or keep a heap (heapq)."


def chosen_of_rest(names: Names, node: ast.expr, loops: list[LoopNode]) -> Iterator[Candidate]:
    """The smallest or largest of what a loop takes it off then: ``nearest = min(waiting, key=...)``.

    And what a loop sorts each time to take its first or last element off.
    """
    if not isinstance(node, ast.Call):
        return
    around = names.module.parent.get(node)
    if names.called(node) in _CHOOSING and len(node.args) == 1 and isinstance(around, ast.Assign):
        rest, chosen = _rest_of(node.args[0]), names_in(around.targets[0])
        if rest is not None and any(_takes_off(each, rest, chosen) for each in _statements(names, loops[0])):
            reason = f"{short(node)} goes through all that is left in {rest} each time, to take one off."
            # However its elements are taken.
            yield Candidate(ALGORITHM, reason, ITERATING, HEAP, weight=1.5, within=True, spends=_is_choice)
    elif _is_sort(node) and isinstance(node.func, ast.Attribute):
        rest = spelled(node.func.value)
        if rest is not None and any(_takes_end_off(each, rest) for each in _statements(names, loops[0])):
            reason = f"{short(node)} sorts all that is left each time, to take one off."
            yield Candidate(ALGORITHM, reason, ANY, SORTED, within=True, spends=_is_sorting)


def _rest_of(node: ast.expr) -> str | None:
    """The text of what is gone through: a name, or the keys or items of a dictionary."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return spelled(node.func.value) if node.func.attr in ("keys", "values", "items") else None
    return spelled(node) if isinstance(node, ast.Name | ast.Attribute) else None


def _statements(names: Names, loop: LoopNode) -> Iterator[ast.AST]:
    for each in body_of(loop, names.module):
        yield from ast.walk(each)


def _takes_off(node: ast.AST, rest: str, chosen: set[str]) -> bool:
    """True for ``rest.remove(chosen)``, ``rest.pop(chosen)`` and ``del rest[chosen]``."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Del):
        return spelled(node.value) == rest and bool(names_in(node.slice) & chosen)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return False
    return node.func.attr in _TAKING_OFF and spelled(node.func.value) == rest and bool(names_in(node.args[0]) & chosen)


def _takes_end_off(node: ast.AST, rest: str) -> bool:
    """True for ``rest.pop()`` and ``rest.pop(0)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "pop":
        return False
    return spelled(node.func.value) == rest and [ast.unparse(each) for each in node.args] in ([], ["0"], ["-1"])


def _is_sort(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "sort" and not node.args


def _is_choice(path: Sequence[str]) -> bool:
    """True for a native path of the interpreter's ``min`` or ``max``."""
    return any(name.startswith(("min_max", "builtin_min", "builtin_max")) for name in path)


def _is_sorting(path: Sequence[str]) -> bool:
    """True for a native path of a sort of the interpreter's."""
    return any(map(_SORT.search, path))
