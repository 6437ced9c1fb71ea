"""Rules for inefficient algorithms: what begins anew each time with all that was there before, or goes step by step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from ...source_code.names import Names
from ...source_code.source import dotted, short, spelled
from .candidates import (
    ALGORITHM,
    ANY,
    MAX_OPERATIONS,
    REDUCTIONS,
    Candidate,
    Evidence,
    all_operands,
    is_repeatable,
    operations_of,
    targets_of,
    uses,
)
from .effects import MAKING_LONGER, is_work, parameters_of
from .kernels import CONCATENATING
from .operands import Operands, Runs

RUNNING = (
    "Go on from the result of the time before instead of starting anew: np.cumsum, np.maximum.accumulate, "
    "np.minimum(best, new), bisect.insort, a heap, or differences of running sums for a window."
)
GO_ON = (
    "Keep the result, and add what the new piece brings: sums and products (np.outer) of it, the best so far with it "
    "(np.partition), or a heap."
)
GATHER = "Collect the pieces in a list, and join them once after the loop (np.concatenate, str.join)."
ADD_IN_PLACE = (
    "Add to it in its place (list.append or extend, table[key] = value, bytearray), or collect the pieces and join "
    "them once."
)
RING = (
    "Store into the oldest one's place, and go on from there (an index modulo the length, "
    "collections.deque(maxlen=...)); keep sums over all of them up to date by what comes and goes."
)
TAKE_OFF = "Take it off in its place (collections.deque.popleft, list.pop), or go on by an index."
UPDATE = "Keep the result, and add to it what the one change brings, such as column * difference."
_COPY_OF_OBJECTS = re.compile(
    r"^(clone_combined_dict_keys|dict_merge|dict_copy|PyDict_(Copy|Update|Merge)|_PyDict_MergeEx|_?list_extend|set_update)"
    r"|^_*mem(cpy|move)"
)
_ANEW = MAKING_LONGER | {"numpy.delete"}
_JOINING = MAKING_LONGER - {"numpy.insert", "numpy.union1d", "pandas.concat"}


def grown_again(names: Names, runs: Runs, node: ast.expr, evidence: Evidence) -> Iterator[Candidate]:
    """Work that begins anew each time with all that was there before: longer slices, or what only grows."""
    loops = names.module.loops(node)
    if not loops:
        yield from _grown_by_calls(names, runs, node, evidence)
        return
    if (
        isinstance(node, ast.Call)
        and is_repeatable(names, node, evidence)
        and runs.operands(node) is Operands.OVERLAPPING
    ):
        grown = runs.grown(loops[0])
        parts = [part for argument in (*node.args, *node.keywords) for part in ast.walk(argument)]
        name = next((text for part in parts if (text := dotted(part)) in grown), None)
        if name is not None:
            reason = f"{short(node)} goes through all of {name} each time round the loop, which only adds to it there."
            yield Candidate(ALGORITHM, reason, ANY, RUNNING, not evidence.grows, evidence.grows)
        elif (window := _window_of(names, node)) is not None:
            reason = (
                f"{short(node)} goes each time round the loop through elements that it went through before: only the "
                f"bounds of {short(window)} move."
            )
            # What comes before the work goes with it.
            yield Candidate(ALGORITHM, reason, ANY, RUNNING)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load):
        around = _call_around(names, node)
        if around is not None and runs.operands(node) is Operands.OVERLAPPING:
            reason = (
                f"{short(around)} goes each time round the loop through elements that it went through before: only "
                f"the bounds of {short(node)} move."
            )
            if evidence.moves:  # of a list the slice is a copy
                yield Candidate(ALGORITHM, reason, CONCATENATING, RUNNING, grows=True)
            yield Candidate(ALGORITHM, reason, ANY, RUNNING, not evidence.grows, evidence.grows)


def _window_of(names: Names, call: ast.Call) -> ast.Subscript | None:
    """The slice that a sum, or what else has a running form, gets by a name."""
    method = call.func if isinstance(call.func, ast.Attribute) and names.called(call) is None else None
    function = method.attr if method is not None else (names.called(call) or "").rpartition(".")[2]
    operands = [method.value] if method is not None else call.args[:1]
    if function not in REDUCTIONS or not operands or not isinstance(operands[0], ast.Name | ast.Subscript):
        return None
    rows = operands[0].value if isinstance(operands[0], ast.Subscript) else None
    if isinstance(rows, ast.Attribute) and rows.attr == "iloc":
        values: list[ast.expr | None] = [operands[0]]
    elif isinstance(operands[0], ast.Name):
        values = names.binding(operands[0].id, call)
    else:
        return None
    value = values[0] if len(values) == 1 else None
    return value if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) else None


def _grown_by_calls(names: Names, runs: Runs, node: ast.expr, evidence: Evidence) -> Iterator[Candidate]:
    """Work of a function with all that its calls have added to an object so far."""
    if not isinstance(node, ast.Call) or not is_repeatable(names, node, evidence):
        return
    if names.called(node) in MAKING_LONGER or runs.operands(node) is not Operands.OVERLAPPING:
        return  # a piece that is added is a finding of its own
    grown, appended = runs.grown_by_calls(node), runs.appended_by_calls(node)
    parts = [part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute | ast.Subscript)]
    values = [value for part in parts if isinstance(part, ast.Name) for value in names.binding(part.id, part) if value]
    all_parts = [*parts, *(part for value in values for part in ast.walk(value) if isinstance(part, ast.expr))]
    name = next((text for part in all_parts if (text := spelled(part)) in grown), None)
    if name is not None:
        reason = f"{short(node)} goes through all of {name} in each call of its function, which only adds to it."
        # What goes through a list converts its elements: all of that is the work.
        kernels = not evidence.grows and name not in appended
        yield Candidate(ALGORITHM, reason, ANY, GO_ON, kernels, evidence.grows)


def computed_anew(names: Names, runs: Runs, node: ast.expr) -> Iterator[Candidate]:
    """Work with all of an array of which one element was changed since: ``x @ w`` in a loop that sets ``w[i]``."""
    loops = names.module.loops(node)
    if not loops:
        return
    works = [each for each in operations_of(node) if isinstance(each.op, ast.MatMult)] if _is_whole(node, names) else []
    for work in [node] if isinstance(node, ast.Call) and is_work(names, node) else works:
        operands = [work.left, work.right] if isinstance(work, ast.BinOp) else _given(names, work)
        changed = runs.changed_by_element(loops[0])
        array = next((text for each in operands if (text := dotted(each)) in changed), None)
        others = [each for each in operands if dotted(each) != array]
        if array is not None and all(runs.operands(each) is Operands.SAME for each in others):
            reason = (
                f"{short(work)} goes through all of {array} each time round the loop, which changed one element of it."
            )
            yield Candidate(ALGORITHM, reason, ANY, UPDATE, kernels=True)


def _is_whole(node: ast.expr, names: Names) -> TypeGuard[ast.BinOp]:
    """True for an operation that is not a part of more."""
    return isinstance(node, ast.BinOp) and not isinstance(names.module.parent.get(node), ast.BinOp)


def _given(names: Names, call: ast.Call) -> list[ast.expr]:
    """The arguments of a call, and what has the method."""
    receiver = [call.func.value] if isinstance(call.func, ast.Attribute) and names.called(call) is None else []
    return [*receiver, *call.args, *(each.value for each in call.keywords)]


def added_to(names: Names, line: int) -> Iterator[Candidate]:
    """Arrays and objects of the interpreter that are made anew again and again, of all that they have and a piece."""
    for statement in names.module.statements.get(line, ()):
        for pair in _stored(statement):
            yield from _added_to(names, statement, *pair)


def _stored(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, each with its value."""
    if isinstance(statement, ast.AugAssign):
        yield statement.target, statement.value
    elif isinstance(statement, ast.Assign):
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            yield target, value


def _added_to(names: Names, statement: ast.stmt, target: ast.expr, value: ast.expr) -> Iterator[Candidate]:
    """Of one of the targets of a statement."""
    is_plain = isinstance(statement, ast.Assign)
    terms = all_operands(value) if is_plain and isinstance(value, ast.BinOp) else [value]
    terms += [] if is_plain else [target]
    text = spelled(target)
    if text is None or not _lives_on(names, target, statement):
        return
    if is_plain and _is_rest(value, text):
        reason = f"All the rest of {text} is copied each time something is taken off it."
        yield Candidate(ALGORITHM, reason, CONCATENATING, TAKE_OFF, grows=True)
    if any(spelled(each) == text for each in terms):
        reason = f"All that {short(target)} has is copied each time something is added to it."
        yield Candidate(ALGORITHM, reason, CONCATENATING, ADD_IN_PLACE, grows=True)
    parts = [part for term in terms for part in ast.walk(term)]
    for call in [part for part in parts if isinstance(part, ast.Call) and names.called(part) in _ANEW]:
        if any(isinstance(each, ast.expr) and spelled(each) == text for each in ast.walk(call)):
            reason = f"{short(call)} copies all that {text} has, each time, to add to it."
            yield Candidate(ALGORITHM, reason, ANY, GATHER, grows=True)
    if isinstance(target, ast.Subscript) and _is_one_more(names, target):
        reason = f"{short(target)} copies all that is there each time, to add one row to it."
        yield Candidate(ALGORITHM, reason, ANY, GATHER, grows=True)


def copied_to_add(names: Names, line: int) -> Iterator[Candidate]:
    """Dictionaries and lists that are made anew of all they have and a piece: ``table = {**table, key: value}``."""
    for node in names.module.expressions(line):
        kept: list[ast.expr] = []
        if isinstance(node, ast.Dict) and len(node.values) > 1:
            kept = [value for key, value in zip(node.keys, node.values, strict=True) if key is None]
        elif isinstance(node, ast.List | ast.Tuple | ast.Set) and len(node.elts) > 1:
            kept = [each.value for each in node.elts if isinstance(each, ast.Starred)]
        for each in kept:
            if _takes_its_place(names, node, each):
                reason = f"All that {short(each)} has is copied each time something is added to it."
                yield Candidate(ALGORITHM, reason, ANY, ADD_IN_PLACE, within=True, spends=is_copy_of_objects)


def is_copy_of_objects(path: Sequence[str]) -> bool:
    """True for a native path that copies a dictionary or a list, as a whole or element by element."""
    return any(map(_COPY_OF_OBJECTS.search, path))


def _takes_its_place(names: Names, node: ast.expr, kept: ast.expr) -> bool:
    """True if a new object is stored where the old one was: under its name, or as the same item of a new record."""
    around = names.module.parent.get(node)
    if isinstance(around, ast.Assign) and around.value is node:
        text = spelled(kept)
        return text is not None and spelled(around.targets[0]) == text and _lives_on(names, around.targets[0], around)
    if isinstance(around, ast.Dict) and isinstance(kept, ast.Subscript):
        items = zip(around.keys, around.values, strict=True)
        key = next((each for each, value in items if value is node), None)
        return key is not None and ast.dump(key) == ast.dump(kept.slice)
    return False


def moved_on(names: Names, line: int) -> Iterator[Candidate]:
    """Arrays of the last few values that are made anew for each one, all of their elements one place further."""
    for statement in names.module.statements.get(line, ()):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Name | ast.Attribute):
            continue
        text, call = spelled(target), statement.value
        if text is None or not isinstance(call, ast.Call) or not call.args or not _lives_on(names, target, statement):
            continue
        function = names.called(call)
        pieces = call.args[0].elts if isinstance(call.args[0], ast.Tuple | ast.List) else call.args
        rolled = function == "numpy.roll" and spelled(call.args[0]) == text and _is_step(call)
        joined = function in _JOINING and any(_is_all_but_ends(each, text) for each in pieces)
        if rolled or joined:
            reason = f"{short(call)} moves all that {text} has by one place each time something is added to it."
            yield Candidate(ALGORITHM, reason, ANY, RING, grows=True)


def _is_step(call: ast.Call) -> bool:
    """True for a shift by one place, in either direction."""
    given = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "shift")]
    return [ast.unparse(each) for each in given] in (["1"], ["-1"])


def _is_all_but_ends(node: ast.expr, text: str) -> bool:
    """True for what has this text without its first or its last elements: ``x[1:]``, ``x[:-1, :]``."""
    if not isinstance(node, ast.Subscript) or spelled(node.value) != text:
        return False
    first, *others = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if not isinstance(first, ast.Slice) or first.step is not None:
        return False
    ends = [each for each in (first.lower, first.upper) if each is not None]
    is_whole = all(isinstance(each, ast.Slice) and each.lower is each.upper is None for each in others)
    return len(ends) == 1 and is_whole


def _is_rest(value: ast.expr, text: str) -> bool:
    """True for a slice of what has this text: ``waiting[1:]``."""
    return isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) and spelled(value.value) == text


def _lives_on(names: Names, target: ast.expr, statement: ast.stmt) -> bool:
    """True if a target has its value still when the statement runs again: in a loop, or beyond its function."""
    scope = names.module.scope(statement)
    return (
        bool(names.module.loops(statement))
        or _is_given_back(scope, target)
        or not isinstance(target, ast.Name)
        or target.id not in names.bindings(scope)
        or any(isinstance(each, ast.Global | ast.Nonlocal) and target.id in each.names for each in ast.walk(scope))
    )


def _is_given_back(scope: ast.AST, target: ast.expr) -> bool:
    """True for a parameter that the function gives back: it gets it again with the next call."""
    if not isinstance(scope, ast.FunctionDef) or not isinstance(target, ast.Name):
        return False
    results = [each.value for each in ast.walk(scope) if isinstance(each, ast.Return) and each.value is not None]
    given = [each for value in results for each in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return target.id in parameters_of(scope) and any(spelled(each) == target.id for each in given)


def _is_one_more(names: Names, target: ast.Subscript) -> bool:
    """True for a row behind the last one: ``frame.loc[len(frame)]``."""
    rows = target.value
    if not isinstance(rows, ast.Attribute) or rows.attr != "loc":
        return False
    frame = spelled(rows.value)
    return any(
        isinstance(each, ast.Call) and names.called(each) == "len" and each.args and spelled(each.args[0]) == frame
        for each in ast.walk(target.slice)
    )


def _call_around(names: Names, node: ast.AST) -> ast.Call | None:
    """The nearest call that an expression is an argument of, or whose method it has."""
    for _ in range(MAX_OPERATIONS):
        node = names.module.parent.get(node, node)
        if isinstance(node, ast.Call):
            return None if names.called(node) in ("len", "range", "enumerate", "zip") else node
        if isinstance(node, ast.stmt):
            break
    return None


def changing_places(names: Names, line: int) -> Iterator[Candidate]:
    """Elements or rows that change places with their neighbours, step by step."""
    for statement in names.module.statements.get(line, ()):
        loops = names.module.loops(statement)
        if not isinstance(statement, ast.Assign) or not loops or isinstance(statement.value, ast.Constant):
            continue
        targets = {name for loop in loops for name in targets_of(loop)}
        stored = _indexed(statement.targets, targets)
        read = _indexed([statement.value], targets)
        for base in stored.keys() & read.keys():
            if len(stored[base] | read[base]) > 1 and len(stored[base]) > 1 and stored[base] & read[base]:
                reason = f"neighbours of {base} change places each time round the loop, one step at a time."
                yield Candidate(ALGORITHM, reason, re.compile(""))


def _indexed(nodes: Sequence[ast.AST], targets: set[str]) -> dict[str, set[str]]:
    """Bases that are indexed with the loop's own names, with all that they are indexed with."""
    indexes: dict[str, set[str]] = {}
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Subscript) and uses(part.slice, targets):
                places = part.slice.elts if isinstance(part.slice, ast.List) else [part.slice]
                base = spelled(part.value)
                if base is not None:
                    indexes.setdefault(base, set()).update(text for each in places if (text := spelled(each)))
    return indexes
