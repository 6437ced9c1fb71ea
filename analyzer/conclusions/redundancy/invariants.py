"""Rules for what is computed again with the same: in each round of a loop, in each call, or twice on a line."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from ...source_code.names import Names
from ...source_code.source import LoopNode, short, spelled
from .candidates import (
    ANY,
    INVARIANT,
    MISUSE,
    SAME_CALL,
    Candidate,
    Evidence,
    expressions_of,
    functions_of,
    has_names,
    has_no_calls,
    is_repeatable,
)
from .effects import MAKING_LONGER, draws
from .operands import Operands, Repetition, Runs

STORING = re.compile(r"subscript|assign|array_copy|CopyInto|CopyObject|copyto|_to_strided|_to_contig|_cast_")
"""Native functions that ``x[:] = y`` runs."""


def is_operation(names: Names, node: ast.expr) -> bool:
    """True for arithmetic that is not a part of more of it."""
    whole = not isinstance(names.module.parent.get(node), ast.BinOp)
    return isinstance(node, ast.BinOp) and whole and has_names(node) and has_no_calls(node)


def why_same(node: ast.expr, found: Repetition) -> str:
    """The reason that a function's expression gets the same, with the loop that runs it."""
    if found.call is None:
        return f"{short(node)} gets the same in each call of its function."
    again = f"{short(found.call)} on line {found.line} runs it again and again"
    return f"{short(node)} gets nothing but what its function is called with: {again}, with the same."


def multiplied_out(names: Names, node: ast.BinOp, loop: LoopNode) -> str | None:
    """The products that a loop need not compute: of D @ (X - E @ A) those are D @ X and D @ E, where A alone changes.

    It pays where D @ E is no larger than D and E are.
    """
    inner = node.right
    if not (isinstance(node.op, ast.MatMult) and isinstance(inner, ast.BinOp) and names.fixed(node.left, loop)):
        return None
    if not isinstance(inner.op, ast.Add | ast.Sub):
        return None
    for term, other in ((inner.left, inner.right), (inner.right, inner.left)):
        if isinstance(other, ast.BinOp) and isinstance(other.op, ast.MatMult):
            factors = [node.left, term, other.left]
            if all(has_names(each) and names.fixed(each, loop) for each in factors):
                return " and ".join(f"{short(node.left, 20)} @ {short(each, 20)}" for each in factors[1:])
    return None


def all_with_one_more(names: Names, runs: Runs, node: ast.expr, evidence: Evidence) -> Iterator[Candidate]:
    """Work with all of what stays the same, and one piece that differs: ``fit(self.texts + [text])``."""
    if not isinstance(node, ast.Call) or not is_repeatable(names, node, evidence):
        return
    for argument in node.args:
        kept = next((each for each in _kept_of(names, argument) if runs.operands(each) is Operands.SAME), None)
        if kept is not None:
            text = short(kept, 24)
            reason = f"{short(node)} gets all of {text} again each time, and one piece that differs."
            remedy = f"Do once what needs only {text}, and keep its result; then only what the piece brings."
            yield Candidate(SAME_CALL, reason, ANY, remedy)


def _kept_of(names: Names, node: ast.expr) -> list[ast.expr]:
    """The objects that an expression may add one piece to."""
    pieces: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        lists = [each for each in (node.left, node.right) if isinstance(each, ast.List) and len(each.elts) == 1]
        pieces = [node.left, node.right] if len(lists) == 1 else []
    elif isinstance(node, ast.Call) and names.called(node) in MAKING_LONGER and node.args:
        first = node.args[0]
        pieces = first.elts if isinstance(first, ast.List | ast.Tuple) else node.args
    kept = [each for each in pieces if spelled(each) is not None and not isinstance(each, ast.List)]
    return kept if len(pieces) == 2 else []


def stored_again(names: Names, line: int) -> Iterator[Candidate]:
    """Arrays that a loop fills anew with values that it does not change."""
    for statement in names.module.statements.get(line, ()):
        loops = names.module.loops(statement)
        if not isinstance(statement, ast.Assign) or not loops or not isinstance(statement.targets[0], ast.Subscript):
            continue
        target = statement.targets[0]
        parts = (target.slice, statement.value)
        if has_names(statement.value) and all(names.fixed(each, loops[0]) for each in parts):
            what = f"{short(target)} gets {short(statement.value)} each time round the loop"
            yield Candidate(INVARIANT, f"{what}, and that does not change.", STORING)


def called_twice(names: Names, expressions: list[ast.expr], evidence: Evidence) -> Iterator[Candidate]:
    """The same call more than once in a statement, or on the line and on the other one of the pairs."""
    calls = [node for node in expressions if isinstance(node, ast.Call) and (node.args or node.keywords)]
    calls = [node for node in calls if not draws(names, node)]
    texts = [(node, text) for node in calls if (text := spelled(node)) is not None]
    counts = Counter(text for _, text in texts)
    for node, text in texts:
        if counts[text] > 1:
            reason = f"{short(node)} is computed {counts[text]} times in one statement."
            yield Candidate(MISUSE, reason, functions_of(node, names.called(node)))
    other = evidence.partner_line
    if other is None or other == evidence.line:
        return
    on_other_line = {spelled(node) for node in expressions_of(names, other) if isinstance(node, ast.Call)}
    for node, text in texts:
        if text in on_other_line:
            reason = f"{short(node)} is called with the same arguments on line {other}, too."
            yield Candidate(SAME_CALL, reason, functions_of(node, names.called(node)))
