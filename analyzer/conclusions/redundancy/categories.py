"""Classifies a redundancy by PieProf's five categories of repetition (Tan et al., ESEC/FSE 2021, section 3.1), by rule.

A rule looks at the text of the line (its expressions, the loop around, the names that change in it) and at the native
functions in which the repeated accesses were. Each expression on the line that fits a category is a candidate, and has
the pairs on its side whose native path is one that such an expression runs: an index runs ``array_subscript``,
``np.power`` runs ``DOUBLE_power``. The category with the most pairs wins if it has a fifth of them; else the category
is not decided, and the report says so.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ...source_code.names import Names
from ...source_code.source import LoopNode, short
from .algorithms import added_to, changing_places, computed_anew, copied_to_add, grown_again, moved_on
from .candidates import (
    ALGORITHM,
    ANY,
    ARITHMETIC,
    INDEXING,
    INVARIANT,
    LEAST_PART,
    MISUSE,
    NONE,
    PRODUCTS,
    REMEDIES,
    SAME_CALL,
    SLICE,
    STORING_INDEX,
    Candidate,
    Evidence,
    expressions_of,
    functions_of,
    has_names,
    has_no_calls,
    is_repeatable,
    operations_of,
    own_functions_of,
    runs_one_of,
    targets_of,
    uses,
)
from .effects import is_work
from .elements import (
    ELEMENT_METHODS,
    WHOLE,
    batches_of_one,
    by_python_function,
    converted_elements,
    counters_of,
    indexed_by_callers,
    indexed_in,
    is_one_draw,
    iterated_arrays,
    of_one_number,
    one_by_one,
    one_of_many,
    products_with_diagonals,
    rows_of_frames,
)
from .invariants import all_with_one_more, called_twice, is_operation, multiplied_out, stored_again, why_same
from .kernels import dispatch_part, is_dispatch, is_iterated, is_kernel, is_of_small_arrays
from .one_after_another import factored_again, one_after_another
from .operands import Operands, Runs
from .searches import searched_for, searched_in_list
from .selections import chosen_of_rest
from .unused_parts import of_objects, parts_of_wholes

MOSTLY = 0.5
"""Of the pairs, in dispatch: where calls do real work, at most a quarter is."""
MOST_OF_A_KIND = 8
"""Operations of one kind on a line that are looked at."""


@dataclass(frozen=True)
class Verdict:
    """The category with its reason; None where the rules do not decide."""

    category: str | None
    reason: str
    remedy: str | None = None
    excused: bool = False
    """True if the line gets other operands each time round: reading some of them again is no repetition of work."""
    by_paths: bool = False
    """True if only the native functions show it, and no expression."""
    grown: bool = False
    """True if the sizes of the line's blocks show it: it works with more and more each time, or moves all of it."""
    by_source: bool = False
    """True if the source alone shows it, and few pairs are enough: much of a library's work is in Python code."""
    within: bool = False
    """True if what is repeated within one call counts as well."""
    spends: Callable[[Sequence[str]], bool] | None = None
    """True for native paths: few pairs are enough where most of the time is in such."""
    functions: re.Pattern[str] | None = None
    """Some of these are on the paths that support the category; None: that is not known."""


def categorise(names: Names | None, evidence: Evidence) -> Verdict:
    """The category of a finding on a line; ``names`` is None where its source is not known."""
    if names is None:
        return Verdict(None, "Which kind of repetition it is cannot be decided without the source.")
    runs = Runs(names, evidence.callers, trusting=evidence.kind == "result")
    weights: dict[str, float] = {}
    best: dict[str, Candidate] = {}
    candidates = list(_candidates(names, runs, evidence))
    changing = (
        _changing(names, runs, evidence.line) if any(each.own is not None for each in candidates) else _Changing()
    )
    for each in candidates:
        part = _support(each, evidence, changing)
        if part > weights.get(each.category, 0.0):
            weights[each.category], best[each.category] = part, each
    category = max(weights, key=lambda category: weights[category], default=None)
    if category is not None and weights[category] >= LEAST_PART:
        chosen = best[category]
        remedy = chosen.remedy or REMEDIES[category]
        return Verdict(
            category,
            chosen.reason,
            remedy,
            grown=chosen.grows,
            by_source=chosen.by_source or (category in (INVARIANT, SAME_CALL, ALGORITHM) and chosen.spends is None),
            within=chosen.within,
            spends=chosen.spends,
            functions=chosen.functions,
        )
    if (chosen_alone := _of_all(names, runs, candidates, evidence)) is not None:
        remedy = chosen_alone.remedy or REMEDIES[chosen_alone.category]
        return Verdict(chosen_alone.category, chosen_alone.reason, remedy, by_source=True)
    undecided = "Which kind of repetition it is was not decided: no expression of the line fits the native functions."
    other = _gets_others(names, runs, evidence)
    little = None if other is None or evidence.kind == "result" else _of_little_work(names, other, candidates, evidence)
    # That the same is stored again shows that it is no operand, where what is stored is not known to be another one. A
    # kernel stores each of its results, and dispatch what it finds of the operands' kind and shape; of a function that
    # is not known as either, what it stores is its own choice.
    if evidence.kind == "store" and (
        little or other is None or runs.operands(other) is not Operands.OTHER or not _is_of_known(evidence)
    ):
        return little or Verdict(None, undecided)
    # The same result of other operands is chance: a state that has settled, a mask of few values.
    if evidence.kind != "load" or other is None:
        return Verdict(None, undecided, excused=other is not None and runs.operands(other) is Operands.OTHER)
    return little or Verdict(None, undecided, excused=True)


def by_results(names: Names, line: int) -> Verdict | None:
    """The verdict on a line whose results are the same again without a reason in its source; None without a call."""
    call = next((each for each in _work(names, line) if isinstance(each, ast.Call)), None)
    if call is None:
        return None
    category = INVARIANT if names.module.loops(call) else SAME_CALL
    reason = f"{short(call)} gives the same again, though its text does not say that it gets the same."
    return Verdict(category, reason, REMEDIES[category])


def _of_all(names: Names, runs: Runs, candidates: Sequence[Candidate], evidence: Evidence) -> Candidate | None:
    """A call that gets the same, on a line that does nothing else: what is below it has names of the library's own."""
    stores = any(
        isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load)
        for each in expressions_of(names, evidence.line)
    )
    if stores or not all(runs.operands(each) is Operands.SAME for each in _work(names, evidence.line)):
        return None
    return next((each for each in candidates if each.calls and each.category in (INVARIANT, SAME_CALL)), None)


def _of_little_work(
    names: Names, other: ast.expr, candidates: Sequence[Candidate], evidence: Evidence
) -> Verdict | None:
    """The verdict on work that gets other operands each time; None if calls do real work.

    Where the line takes elements in a loop, for operators alone, that is why each has little to do. Operators and
    methods of small arrays have no other way, nor have functions beside such operators: of a function of the library
    there is one for all, or for one number.
    """
    if _little_work_part(evidence) < MOSTLY:
        return None
    calls = [each for each in _work(names, evidence.line) if isinstance(each, ast.Call)]
    element = next((each for each in candidates if each.category == SLICE), None)
    if element is not None and not calls:
        return Verdict(SLICE, element.reason, element.remedy or REMEDIES[SLICE], by_paths=True)
    functions = [each for each in calls if names.called(each) is not None]
    if not functions:
        return None
    of_numpy = all((names.called(each) or "").startswith("numpy.") for each in functions)
    if of_numpy and is_of_small_arrays(evidence.paths):
        return Verdict(None, "Calls with small arrays do little work each time.", excused=True)
    other = other if other in functions else functions[0]
    reason = f"{short(other)} does little work each time: most of what repeats is what comes before it in each call."
    return Verdict(MISUSE, reason, REMEDIES[MISUSE], by_paths=True)


def _is_of_known(evidence: Evidence) -> bool:
    """True if most of the accesses are those of known kernels and dispatch."""
    known = sum(is_kernel(each) or is_dispatch(each) for each in evidence.innermost)
    return known >= MOSTLY * len(evidence.innermost)


def _little_work_part(evidence: Evidence) -> float:
    """The part of the pairs that is dispatch of calls; an element that is looked up has no other way."""
    of_calls = sum(
        is_dispatch(first) and not any(map(INDEXING.search, path))
        for first, path in zip(evidence.innermost, evidence.paths, strict=False)
    )
    return of_calls / len(evidence.paths) if evidence.paths else 0.0


@dataclass
class _Changing:
    """The work of a line that gets other operands each time."""

    functions: set[re.Pattern[str]] = field(default_factory=set)
    calls: bool = False
    """True if some of it is a call, and not an operator."""


def _changing(names: Names, runs: Runs, line: int) -> _Changing:
    """What changes on a line; of much work of one kind the first is looked at."""
    looked_at = Counter[re.Pattern[str]]()
    changing = _Changing()
    for node in _work(names, line):
        functions = own_functions_of(names, node)
        looked_at[functions] += 1
        is_looked_at = functions not in changing.functions and looked_at[functions] <= MOST_OF_A_KIND
        if is_looked_at and runs.operands(node) in (Operands.OTHER, Operands.UNKNOWN):
            changing.functions.add(functions)
            changing.calls = changing.calls or isinstance(node, ast.Call)
    return changing


def _support(candidate: Candidate, evidence: Evidence, changing: _Changing) -> float:
    """The part of the redundant pairs that a candidate explains.

    What all ufuncs run is run by the changing work of the line as well. An operator's own function is on the path.
    """
    if candidate.kernels:
        return 1.0 - dispatch_part(evidence.innermost) if evidence.innermost else 0.0
    if not evidence.paths:
        return 0.0
    if candidate.lookup:
        stores = [any(map(STORING_INDEX.search, path)) for path in evidence.paths]
        looks_up = [
            not is_kernel(first) and not is_store for first, is_store in zip(evidence.innermost, stores, strict=False)
        ]
        return sum(looks_up) / len(evidence.paths)
    paths = evidence.paths
    if candidate.own is not None and changing.functions:
        unclaimed = [path for path in paths if not any(runs_one_of(each, path) for each in changing.functions)]
        if evidence.kind == "result":
            # Results that are the same can only be of what gets the same, also where the line calls the same function
            # with other operands as well.
            own = candidate.own if candidate.own in changing.functions else NONE
            others = changing.functions - {own}
            mine = [path for path in paths if runs_one_of(own, path) and not any(runs_one_of(o, path) for o in others)]
            paths = [*unclaimed, *mine]
        else:
            # A product of matrices that stays the same is no trifle beside others.
            is_shared = candidate.own in changing.functions and candidate.own is not PRODUCTS
            own = NONE if is_shared else candidate.own
            may_be = [] if changing.calls or not candidate.calls else unclaimed
            paths = [path for path in paths if runs_one_of(own, path) or path in may_be]
    of_results = evidence.kind == "result" and candidate.category in (INVARIANT, SAME_CALL)
    supporting = len(paths) if of_results else sum(runs_one_of(candidate.functions, path) for path in paths)
    return candidate.weight * supporting / len(evidence.paths)


def _candidates(names: Names, runs: Runs, evidence: Evidence) -> Iterator[Candidate]:
    expressions = expressions_of(names, evidence.line)
    if evidence.kind != "result" and not evidence.own and any(map(is_iterated, evidence.paths)):
        yield from iterated_arrays(names, expressions)
    yield from changing_places(names, evidence.line)  # they are indexed, too: the first of two equal ones is taken
    yield from stored_again(names, evidence.line)
    if evidence.grows:
        yield from added_to(names, evidence.line)
    yield from copied_to_add(names, evidence.line)
    if evidence.moves:
        yield from moved_on(names, evidence.line)
    yield from of_objects(names, evidence)
    for node in expressions:
        yield from parts_of_wholes(names, runs, node)
        yield from all_with_one_more(names, runs, node, evidence)
        yield from grown_again(names, runs, node, evidence)
        yield from computed_anew(names, runs, node)
        yield from factored_again(names, runs, node)
        yield from by_python_function(names, node)
        if isinstance(node, ast.Call):
            yield from batches_of_one(names, node, evidence)
        yield from products_with_diagonals(names, node)
        yield from searched_for(names, runs, node)
        if evidence.own:
            yield from searched_in_list(names, runs, node)
        loops = names.module.loops(node)
        if loops:
            yield from _in_loop(names, runs, node, loops, evidence)
        else:
            yield from _outside_loops(names, runs, node, evidence)
    yield from rows_of_frames(names, evidence)
    yield from called_twice(names, expressions, evidence)
    yield from one_by_one(names, evidence.line)


def _outside_loops(names: Names, runs: Runs, node: ast.expr, evidence: Evidence) -> Iterator[Candidate]:
    yield from indexed_by_callers(names, node, evidence)
    if (isinstance(node, ast.Call) and is_repeatable(names, node, evidence)) or is_operation(names, node):
        found = runs.of(node)
        if found.operands is Operands.SAME:
            category = INVARIANT if found.movable else SAME_CALL
            functions = functions_of(node, names.called(node)) if isinstance(node, ast.Call) else ARITHMETIC
            own, calls = own_functions_of(names, node), isinstance(node, ast.Call)
            yield Candidate(category, why_same(node, found), functions, own=own, calls=calls)


def _in_loop(
    names: Names, runs: Runs, node: ast.expr, loops: list[LoopNode], evidence: Evidence
) -> Iterator[Candidate]:
    targets = {name for loop in loops for name in targets_of(loop)}
    yield from one_after_another(names, runs, node, loops)  # a piece of bytes is indexed, too
    yield from chosen_of_rest(names, node, loops)
    yield from indexed_in(names, node, loops, evidence.line)
    if isinstance(node, ast.Call):
        yield from one_of_many(names, node, loops)
        yield from converted_elements(names, node, loops, evidence)
        function = names.called(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ELEMENT_METHODS and uses(node, targets):
            reason = f"{short(node)} takes or sets one element each time round the loop."
            yield Candidate(SLICE, reason, ANY, WHOLE, lookup=True, by_source=True)
        if is_repeatable(names, node, evidence) and runs.operands(node) is Operands.SAME:
            reason = f"{short(node)} is computed each time round the loop, and nothing in it changes there."
            own = own_functions_of(names, node)
            yield Candidate(INVARIANT, reason, functions_of(node, function), own=own, calls=True)
        elif is_one_draw(names, runs, node, loops[0], evidence):
            reason = f"{short(node)} draws one number each time round the loop: the call is dearer than its work."
            yield Candidate(MISUSE, reason, ANY, "Draw all numbers with one call, before the loop (size=...).")
        elif function is not None and of_one_number(names, function, node, targets, counters_of(names, loops)):
            reason = f"{short(node)} gets one number each time round the loop: the call is dearer than its work."
            yield Candidate(MISUSE, reason, functions_of(node, function))
    if isinstance(node, ast.BinOp) and not isinstance(names.module.parent.get(node), ast.BinOp):
        for part in operations_of(node):
            if has_names(part) and has_no_calls(part) and runs.operands(part) is Operands.SAME:
                reason = f"{short(part)} is computed each time round the loop, and nothing in it changes there."
                functions = PRODUCTS if isinstance(part.op, ast.MatMult) else ARITHMETIC
                yield Candidate(INVARIANT, reason, functions, own=own_functions_of(names, part))
            elif (products := multiplied_out(names, part, loops[0])) is not None:
                reason = f"{products}, of {short(part)} multiplied out, do not change in the loop."
                yield Candidate(INVARIANT, reason, PRODUCTS, "Multiply out, and compute what does not change before.")


def _gets_others(names: Names, runs: Runs, evidence: Evidence) -> ast.expr | None:
    """A piece of work of a line that is not known to get the same operands each time; of several a call."""
    changing: list[tuple[bool, ast.expr]] = []
    for node in _work(names, evidence.line):
        found = runs.operands(node)
        if isinstance(node, ast.Call) and is_repeatable(names, node, evidence) and found is Operands.OVERLAPPING:
            return None
        if found in (Operands.OTHER, Operands.UNKNOWN):
            changing.append((found is Operands.OTHER, node))
    # What is named is sure to change, if there is such, and a call.
    changing.sort(key=lambda each: (not each[0], not isinstance(each[1], ast.Call), not isinstance(each[1], ast.BinOp)))
    return changing[0][1] if changing else None


def _work(names: Names, line: int) -> Iterator[ast.expr]:
    """The expressions of a line that are work of a library: what ``+=`` adds to changes by that."""
    for statement in names.module.statements.get(line, ()):
        if isinstance(statement, ast.AugAssign):
            yield statement.target
    expressions = expressions_of(names, line)
    # An element is stored into where nothing else is done.
    stores = not any(isinstance(node, ast.Call) for node in expressions)
    for node in expressions:
        indexed = isinstance(node, ast.Subscript) and (stores or isinstance(node.ctx, ast.Load))
        if has_names(node) and (is_work(names, node) or indexed):
            yield node
