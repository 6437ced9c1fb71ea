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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ...source_code.names import ARRAYS, Names
from ...source_code.source import LoopNode, dotted, parts_of, short, spelled
from .kernels import CONCATENATING, dispatch_part, is_dispatch, is_iterated, is_kernel
from .kernels import ITERATING as ITERATED
from .operands import BUILT, Caller, Operands, Repetition, Runs, draws, is_work

SLICE, SAME_CALL, ALGORITHM = "slice-underutilization", "repeated-call-same-arguments", "inefficient-algorithm"
MISUSE, INVARIANT = "api-misuse", "loop-invariant"

REMEDIES = {
    SLICE: "Take whole slices instead of elements: one call then does the checks of all.",
    SAME_CALL: "Keep the result of the first call, or cache the function (functools.lru_cache).",
    ALGORITHM: "Move each row or element straight to its place, with one assignment of slices or an index array.",
    MISUSE: "Compute it once, with one call for all elements (np.sum, np.modf), or with math for single numbers.",
    INVARIANT: "Compute it once, before the loop.",
}
"""The usual remedy, by category."""
RUNNING = (
    "Go on from the result of the time before instead of starting anew: np.cumsum, np.maximum.accumulate, "
    "np.minimum(best, new), bisect.insort, a heap, or differences of running sums for a window."
)
GATHER = "Collect the pieces in a list, and join them once after the loop (np.concatenate, str.join)."
ADD_IN_PLACE = "Add to it in its place (list.append or extend, bytearray), or collect the pieces and join them once."

TAKE_OFF = "Take it off in its place (collections.deque.popleft, list.pop), or go on by an index."

WHOLE = "Work on all elements with one call: an array of them (np.asarray), or a function of the library for the whole."
COLUMNS = (
    "Compute with whole columns: one operation is then one call for all rows (np.where for what depends on a row)."
)

Kind = Literal["load", "store", "result"]
"""A result is a block of memory that a call has filled with the same as an earlier one."""

LEAST_PART = 0.2
"""Of the pairs, that the paths of a category have to be."""
MOSTLY = 0.5
"""Of the pairs, in dispatch: where calls do real work, at most a quarter is."""
MAX_EXPRESSIONS = 400
MAX_OPERATIONS = 100
MOST_OF_A_KIND = 8
"""Operations of one kind on a line that are looked at."""

INDEXING = re.compile(
    r"subscript|array_item|getitem|setitem|prepare_index|unpack_ind|get_item|set_item|_index\b|mapiter"
)
"""Functions of NumPy, pandas and Cython behind ``x[i]``."""
STORING_INDEX = re.compile(r"ass(ign)?_subscript|ass_item|setitem|set_item")
"""Those behind ``x[i] = y``."""
UFUNCS = re.compile(
    r"ufunc|scalarmath|_(add|subtract|multiply|true_divide|power|square)\b|convert_to_|resolve_", re.IGNORECASE
)
"""Native functions that run for any ufunc, and for arithmetic with NumPy's scalars."""
PRODUCTS = re.compile(r"matmul|gemm|gemv|dot|cblas|multiply|einsum", re.IGNORECASE)
ARITHMETIC = re.compile(
    r"array_(add|subtract|multiply|true_divide|power|remainder|matrix)|nb_|ufunc|_arithm", re.IGNORECASE
)
ITERATING = re.compile(r"array_(item|iter)|seqiter|iter_iternext|subscript", re.IGNORECASE)
"""Native functions that take the next row of an array."""
STORING = re.compile(r"subscript|assign|array_copy|CopyInto|CopyObject|copyto|_to_strided|_to_contig|_cast_")
"""Native functions that ``x[:] = y`` runs."""
EACH_ROW = re.compile(f"{ARITHMETIC.pattern}|{UFUNCS.pattern}", re.IGNORECASE)

REDUCING = re.compile(r"[Rr]educ(e|tion)|pairwise_sum|_(Mean|Sum|Std|Any|All|Max|Min)\b")
"""Native functions that sums and their like run."""
_REDUCTIONS = frozenset({"sum", "mean", "std", "var", "max", "min", "any", "all", "prod", "amax", "amin", "average"})
_OPERATIONS: dict[type[ast.operator], re.Pattern[str]] = {
    ast.Add: re.compile(r"(?<![a-z])add\b|_add(_|\b)"),
    ast.Sub: re.compile(r"subtract"),
    ast.Mult: re.compile(r"multiply"),
    ast.Div: re.compile(r"divide"),
    ast.FloorDiv: re.compile(r"floor_divide"),
    ast.Pow: re.compile(r"power|square"),
    ast.Mod: re.compile(r"remainder"),
}
_COMPARING = re.compile(r"richcompare|_(less|greater|equal|not_equal)")
_NONE = re.compile("(?!)")

_ELEMENTWISE = frozenset(
    {
        *("abs", "absolute", "square", "sqrt", "power", "exp", "log", "log2", "log10", "sin", "cos", "tan", "floor"),
        *("ceil", "round", "maximum", "minimum", "sign", "add", "multiply", "subtract", "divide", "mod", "fabs", "sum"),
        *("array", "asarray", "prod", "mean", "dot", "clip", "arctan2", "arctan", "tanh", "hypot", "isnan"),
    }
)
"""Functions of NumPy that are made for arrays, and dear for one number."""

_BY_ELEMENT = frozenset(
    {"sum", "max", "min", "any", "all", "list", "tuple", "set", "sorted", "map", "enumerate", "zip"}
)
"""Built-in functions that iterate over what they get."""
_OF_ARRAYS = {"sum": "sum", "max": "max", "min": "min", "any": "any", "all": "all", "sorted": "sort", "set": "unique"}
_GROWING = frozenset(
    {
        *("numpy.append", "numpy.concatenate", "numpy.hstack", "numpy.vstack", "numpy.insert", "numpy.r_"),
        *("numpy.column_stack", "numpy.row_stack", "numpy.dstack", "numpy.delete", "pandas.concat"),
    }
)
"""Functions that make a new array of an old one and a piece."""
_PLACE_OF_SIZE = {
    **dict.fromkeys(("random", "random_sample", "standard_normal", "standard_exponential", "rand", "randn"), 0),
    **dict.fromkeys(("choice", "exponential", "poisson", "geometric"), 1),
    **dict.fromkeys(("integers", "randint", "normal", "uniform", "binomial", "gamma", "beta", "lognormal"), 2),
}
"""The position of the argument that says how many numbers a function of NumPy's generators draws."""
_ANY = re.compile("")

_MADE = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PLACES = frozenset({"iloc", "loc", "iat", "at"})
"""Attributes of pandas' objects by which elements are looked up."""
_ELEMENT_METHODS = frozenset({"getpixel", "putpixel", "item", "itemset", "getrow", "getcol"})
"""Methods that take or set one element."""
_SEQUENCES = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Slice)


@dataclass(frozen=True)
class Evidence:
    """Measurements of a redundancy. ``paths`` has the native functions of both accesses of each redundant pair."""

    kind: Kind
    paths: Sequence[Sequence[str]]
    innermost: Sequence[str]
    """Of each redundant pair: the function whose access was sampled."""
    line: int
    partner_line: int | None
    """None: another file's, or not known."""
    callers: Sequence[Caller] = ()
    """Lines from which the line's function was called, the innermost first."""
    grows: bool = False
    """True if the line's blocks become larger and larger."""


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
    """True if the line works with more and more each time."""
    by_source: bool = False
    """True if the source alone shows it, and few pairs are enough: much of a library's work is in Python code."""
    functions: re.Pattern[str] | None = None
    """Some of these are on the paths that support the category; None: that is not known."""


@dataclass(frozen=True)
class _Candidate:
    category: str
    reason: str
    functions: re.Pattern[str]
    remedy: str | None = None
    """None: the category's usual one."""
    kernels: bool = False
    """True if it is supported only by accesses of kernels."""
    grows: bool = False
    """True if it is supported by blocks that grow as well."""
    weight: float = 1.0
    """Of the pairs that it explains."""
    own: re.Pattern[str] | None = None
    """The functions that nothing else runs: these alone support it on a line with work that changes. None: all do."""
    lookup: bool = False
    """True for an element that is all the work of its line: what is no kernel runs for it."""
    by_source: bool = False
    """True if it needs few pairs."""
    calls: bool = False
    """True for a call: on a line whose other work is operators, what is not theirs is its."""


def categorise(names: Names | None, evidence: Evidence) -> Verdict:
    """The category of a finding on a line; ``names`` is None where its source is not known."""
    if names is None:
        return Verdict(None, "Which kind of repetition it is cannot be decided without the source.")
    runs = Runs(names, evidence.callers, trusting=evidence.kind == "result")
    weights: dict[str, float] = {}
    best: dict[str, _Candidate] = {}
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
            by_source=chosen.by_source or category in (INVARIANT, SAME_CALL),
            functions=chosen.functions,
        )
    undecided = "Which kind of repetition it is was not decided: no expression of the line fits the native functions."
    other = _gets_others(names, runs, evidence)
    little = None if other is None or evidence.kind == "result" else _of_little_work(other, evidence)
    # That the same is stored again shows that it is no operand, where what is stored is not known to be another one.
    if evidence.kind == "store" and (little or other is None or runs.operands(other) is not Operands.OTHER):
        return little or Verdict(None, undecided)
    # The same result of other operands is chance: a state that has settled, a mask of few values.
    if evidence.kind != "load" or other is None:
        return Verdict(None, undecided, excused=other is not None and runs.operands(other) is Operands.OTHER)
    return little or Verdict(None, undecided, excused=True)


def _of_little_work(other: ast.expr, evidence: Evidence) -> Verdict | None:
    """The verdict on work that gets other operands each time; None if calls do real work."""
    if _little_work_part(evidence) < MOSTLY:
        return None
    reason = f"{short(other)} does little work each time: most of what repeats is what comes before it in each call."
    return Verdict(MISUSE, reason, REMEDIES[MISUSE], by_paths=True)


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
        functions = _own_functions(names, node)
        looked_at[functions] += 1
        is_looked_at = functions not in changing.functions and looked_at[functions] <= MOST_OF_A_KIND
        if is_looked_at and runs.operands(node) in (Operands.OTHER, Operands.UNKNOWN):
            changing.functions.add(functions)
            changing.calls = changing.calls or isinstance(node, ast.Call)
    return changing


def _support(candidate: _Candidate, evidence: Evidence, changing: _Changing) -> float:
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
            paths = unclaimed  # results that are the same can only be of what gets the same
        else:
            # A product of matrices that stays the same is no trifle beside others.
            is_shared = candidate.own in changing.functions and candidate.own is not PRODUCTS
            own = _NONE if is_shared else candidate.own
            may_be = [] if changing.calls or not candidate.calls else unclaimed
            paths = [path for path in paths if runs_one_of(own, path) or path in may_be]
    of_results = evidence.kind == "result" and candidate.category in (INVARIANT, SAME_CALL)
    supporting = len(paths) if of_results else sum(runs_one_of(candidate.functions, path) for path in paths)
    return candidate.weight * supporting / len(evidence.paths)


def runs_one_of(functions: re.Pattern[str], path: Sequence[str]) -> bool:
    """True if a native path has one of these functions; reading an element is not storing into one."""
    reads = functions is INDEXING
    return any(map(functions.search, path)) and not (reads and any(map(STORING_INDEX.search, path)))


def _expressions(names: Names, line: int) -> list[ast.expr]:
    expressions = names.module.expressions(line)
    return [node for node, _ in zip(expressions, range(MAX_EXPRESSIONS), strict=False)]


def _candidates(names: Names, runs: Runs, evidence: Evidence) -> Iterator[_Candidate]:
    expressions = _expressions(names, evidence.line)
    if evidence.kind != "result" and any(map(is_iterated, evidence.paths)):
        yield from _iterated(names, expressions)
    yield from _neighbours(names, evidence.line)  # they are indexed, too: the first of two equal ones is taken
    yield from _stored_again(names, evidence.line)
    if evidence.grows:
        yield from _added_to(names, evidence.line)
    for node in expressions:
        yield from _grown(names, runs, node, evidence)
        loops = names.module.loops(node)
        if loops:
            yield from _searched(names, runs, node)
            yield from _in_loop(names, runs, node, loops, evidence)
        elif (isinstance(node, ast.Call) and _is_repeatable(names, node, evidence)) or _is_operation(names, node):
            found = runs.of(node)
            if found.operands is Operands.SAME:
                category = INVARIANT if found.movable else SAME_CALL
                functions = _runs(node, names.called(node)) if isinstance(node, ast.Call) else ARITHMETIC
                own, calls = _own_functions(names, node), isinstance(node, ast.Call)
                yield _Candidate(category, _why_same(node, found), functions, own=own, calls=calls)
    yield from _rows_of_frames(names, evidence)
    yield from _twice(names, expressions, evidence)
    yield from _one_by_one(names, evidence.line)


def _is_operation(names: Names, node: ast.expr) -> bool:
    """True for arithmetic that is not a part of more of it."""
    whole = not isinstance(names.module.parent.get(node), ast.BinOp)
    return isinstance(node, ast.BinOp) and whole and _has_names(node) and _has_no_calls(node)


def _why_same(node: ast.expr, found: Repetition) -> str:
    if found.call is None:
        return f"{short(node)} gets the same in each call of its function."
    again = f"{short(found.call)} on line {found.line} runs it again and again"
    return f"{short(node)} gets nothing but what its function is called with: {again}, with the same."


def _iterated(names: Names, expressions: Sequence[ast.expr]) -> Iterator[_Candidate]:
    """Built-in functions that take the elements of an array one by one."""
    for node in expressions:
        function = names.called(node)
        # A generator makes what it gives: no array is gone through.
        made = bool(isinstance(node, ast.Call) and node.args and isinstance(node.args[0], _MADE))
        if isinstance(node, ast.Call) and function in _BY_ELEMENT and node.args and not made:
            taken = short(node.args[0], 24)
            instead = f"np.{_OF_ARRAYS[function]}({taken})" if function in _OF_ARRAYS else f"{taken}.tolist()"
            reason = f"{short(node)} takes the elements of {taken} one by one, and each becomes an object of its own."
            remedy = f"Take the array's own function, which makes no objects: {instead}."
            yield _Candidate(MISUSE, reason, ITERATED, remedy)


def _grown(names: Names, runs: Runs, node: ast.expr, evidence: Evidence) -> Iterator[_Candidate]:
    """Work that begins anew each time with all that was there before: longer slices, or what only grows."""
    loops = names.module.loops(node)
    if not loops:
        return
    if (
        isinstance(node, ast.Call)
        and _is_repeatable(names, node, evidence)
        and runs.operands(node) is Operands.OVERLAPPING
    ):
        grown = runs.grown(loops[0])
        parts = [part for argument in (*node.args, *node.keywords) for part in ast.walk(argument)]
        name = next((text for part in parts if (text := dotted(part)) in grown), None)
        if name is not None:
            reason = f"{short(node)} goes through all of {name} each time round the loop, which only adds to it there."
            yield _Candidate(ALGORITHM, reason, _ANY, RUNNING, not evidence.grows, evidence.grows)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load):
        around = _call_around(names, node)
        if around is not None and runs.operands(node) is Operands.OVERLAPPING:
            reason = (
                f"{short(around)} goes each time round the loop through elements that it went through before: only "
                f"the bounds of {short(node)} move."
            )
            yield _Candidate(ALGORITHM, reason, _ANY, RUNNING, not evidence.grows, evidence.grows)


def _added_to(names: Names, line: int) -> Iterator[_Candidate]:
    """What is made anew of all that it has and a piece, again and again: an array, or an object of the interpreter."""
    for statement in names.module.statements.get(line, ()):
        target: ast.expr
        if isinstance(statement, ast.AugAssign):
            target, terms = statement.target, [statement.target, statement.value]
        elif isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
            terms = _operands(value) if isinstance(value, ast.BinOp) else [value]
        else:
            continue
        text = spelled(target)
        if text is None or not _lives_on(names, target, statement):
            continue
        if isinstance(statement, ast.Assign) and _is_rest(statement.value, text):
            reason = f"All the rest of {text} is copied each time something is taken off it."
            yield _Candidate(ALGORITHM, reason, CONCATENATING, TAKE_OFF, grows=True)
        if any(spelled(each) == text for each in terms):
            reason = f"All that {short(target)} has is copied each time something is added to it."
            yield _Candidate(ALGORITHM, reason, CONCATENATING, ADD_IN_PLACE, grows=True)
        parts = [part for term in terms for part in ast.walk(term)]
        for call in [part for part in parts if isinstance(part, ast.Call) and names.called(part) in _GROWING]:
            if any(isinstance(each, ast.expr) and spelled(each) == text for each in ast.walk(call)):
                reason = f"{short(call)} copies all that {text} has, each time, to add to it."
                yield _Candidate(ALGORITHM, reason, _ANY, GATHER, grows=True)
        if isinstance(target, ast.Subscript) and _is_one_more(names, target):
            reason = f"{short(target)} copies all that is there each time, to add one row to it."
            yield _Candidate(ALGORITHM, reason, _ANY, GATHER, grows=True)


def _is_rest(value: ast.expr, text: str) -> bool:
    """True for a slice of what has this text: ``waiting[1:]``."""
    return isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) and spelled(value.value) == text


def _lives_on(names: Names, target: ast.expr, statement: ast.stmt) -> bool:
    """True if a target has its value still when the statement runs again: in a loop, or beyond its function."""
    scope = names.module.scope(statement)
    return (
        bool(names.module.loops(statement))
        or not isinstance(target, ast.Name)
        or target.id not in names.bindings(scope)
        or any(isinstance(each, ast.Global | ast.Nonlocal) and target.id in each.names for each in ast.walk(scope))
    )


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


def _searched(names: Names, runs: Runs, node: ast.expr) -> Iterator[_Candidate]:
    """One value that is looked for in all of an array: np.where(array == value)."""
    function = (names.called(node) or "").rpartition(".")[2] if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and not function and isinstance(node.func, ast.Attribute):
        function = node.func.attr
    if not isinstance(node, ast.Call) or function not in ("where", "nonzero", "flatnonzero", "argwhere", "argmax"):
        return
    parts = [*node.args[:1], *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
    for part in parts:
        if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq):
            sides = [part.left, part.comparators[0]]
            found = {runs.operands(side): side for side in sides}
            if Operands.SAME in found and Operands.OTHER in found and _has_names(found[Operands.SAME]):
                array = short(found[Operands.SAME], 24)
                reason = f"{short(node)} goes through all of {array} for one value, each time round the loop."
                remedy = f"Sort {array} once and search in it for all values (np.searchsorted), or make a dict of it."
                yield _Candidate(ALGORITHM, reason, _ANY, remedy, kernels=True)


def _call_around(names: Names, node: ast.AST) -> ast.Call | None:
    """The nearest call that an expression is an argument of, or whose method it has."""
    for _ in range(MAX_OPERATIONS):
        node = names.module.parent.get(node, node)
        if isinstance(node, ast.Call):
            return None if names.called(node) in ("len", "range", "enumerate", "zip") else node
        if isinstance(node, ast.stmt):
            break
    return None


def _is_repeatable(names: Names, node: ast.Call, evidence: Evidence) -> bool:
    """True for a call that does work of a library with something: a call of nothing gives no clue."""
    method = isinstance(node.func, ast.Attribute) and names.called(node) is None
    is_built = evidence.kind == "result" and names.called(node) in BUILT
    return (is_built or is_work(names, node)) and bool(node.args or node.keywords or method)


def _in_loop(
    names: Names, runs: Runs, node: ast.expr, loops: list[LoopNode], evidence: Evidence
) -> Iterator[_Candidate]:
    targets = {name for loop in loops for name in _targets(loop)}
    yield from _indexed_in(node, targets, alone=_is_alone(names, evidence.line))
    if isinstance(node, ast.Call):
        function = names.called(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _ELEMENT_METHODS and _uses(node, targets):
            reason = f"{short(node)} takes or sets one element each time round the loop."
            yield _Candidate(SLICE, reason, _ANY, WHOLE, lookup=True, by_source=True)
        if _is_repeatable(names, node, evidence) and runs.operands(node) is Operands.SAME:
            reason = f"{short(node)} is computed each time round the loop, and nothing in it changes there."
            own = _own_functions(names, node)
            yield _Candidate(INVARIANT, reason, _runs(node, function), own=own, calls=True)
        elif _is_one_draw(names, runs, node, loops[0], evidence):
            reason = f"{short(node)} draws one number each time round the loop: the call is dearer than its work."
            yield _Candidate(MISUSE, reason, _ANY, "Draw all numbers with one call, before the loop (size=...).")
        elif function is not None and _of_one_number(names, function, node, targets, _counters(names, loops)):
            reason = f"{short(node)} gets one number each time round the loop: the call is dearer than its work."
            yield _Candidate(MISUSE, reason, _runs(node, function))
    if isinstance(node, ast.BinOp) and not isinstance(names.module.parent.get(node), ast.BinOp):
        for part in _operations(node):
            if _has_names(part) and _has_no_calls(part) and runs.operands(part) is Operands.SAME:
                reason = f"{short(part)} is computed each time round the loop, and nothing in it changes there."
                functions = PRODUCTS if isinstance(part.op, ast.MatMult) else ARITHMETIC
                yield _Candidate(INVARIANT, reason, functions, own=_own_functions(names, part))
            elif (products := _multiplied_out(names, part, loops[0])) is not None:
                reason = f"{products}, of {short(part)} multiplied out, do not change in the loop."
                yield _Candidate(INVARIANT, reason, PRODUCTS, "Multiply out, and compute what does not change before.")


def _indexed_in(node: ast.expr, targets: set[str], *, alone: bool) -> Iterator[_Candidate]:
    """An element that a loop looks up by its own names; ``alone``: its line does nothing else."""
    if not isinstance(node, ast.Subscript) or not _uses(node.slice, targets):
        return
    reason = f"{short(node)} is looked up each time round the loop, with all checks of the array."
    stored = not isinstance(node.ctx, ast.Load)
    # Of several elements on a line the one that is named is stored into if the pairs are of storing, or else read.
    yield _Candidate(SLICE, reason, STORING_INDEX if stored else INDEXING)
    if stored:
        yield _Candidate(SLICE, reason, INDEXING, weight=LEAST_PART)
    of_frame = isinstance(node.value, ast.Attribute) and node.value.attr in _PLACES
    if of_frame or (alone and not stored):
        yield _Candidate(SLICE, reason, INDEXING, lookup=True, by_source=of_frame)


def _rows_of_frames(names: Names, evidence: Evidence) -> Iterator[_Candidate]:
    """Rows of a table that are made objects of their own: frame.apply(f, axis=1), frame.iterrows()."""
    for of_file, line in ((names, evidence.line), *evidence.callers[:1]):
        for node in _expressions(of_file, line):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr == "iterrows" or (node.func.attr == "apply" and any(map(_is_of_rows, node.keywords))):
                reason = f"{short(node)} makes each row an object of its own, and looks up its elements by name."
                yield _Candidate(MISUSE, reason, _ANY, COLUMNS, lookup=True, by_source=True)


def _is_of_rows(keyword: ast.keyword) -> bool:
    return keyword.arg == "axis" and isinstance(keyword.value, ast.Constant) and keyword.value.value in (1, "columns")


def _is_alone(names: Names, line: int) -> bool:
    """True for a line that looks up elements, and may add them to something, and does no other work."""
    return not any(isinstance(node, ast.Call | ast.BinOp | ast.Compare) for node in _expressions(names, line))


def _is_one_draw(names: Names, runs: Runs, call: ast.Call, loop: LoopNode, evidence: Evidence) -> bool:
    """True if a generator of NumPy draws one number, of a distribution that does not change.

    That it is one is known by the source, or by the native functions.
    """
    if not isinstance(call.func, ast.Attribute):
        return False
    drawing = re.compile(rf"(Generator|RandomState)_\w*{re.escape(call.func.attr)}\b")
    if not names.is_random(call) and not any(map(drawing.search, (name for path in evidence.paths for name in path))):
        return False
    place = _PLACE_OF_SIZE.get(call.func.attr)
    if place is None or len(call.args) > place or any(each.arg == "size" for each in call.keywords):
        return False
    return runs.of_arguments(call, loop) is Operands.SAME


def _multiplied_out(names: Names, node: ast.BinOp, loop: LoopNode) -> str | None:
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
            if all(_has_names(each) and names.fixed(each, loop) for each in factors):
                return " and ".join(f"{short(node.left, 20)} @ {short(each, 20)}" for each in factors[1:])
    return None


def _stored_again(names: Names, line: int) -> Iterator[_Candidate]:
    """Arrays that a loop fills anew with values that it does not change."""
    for statement in names.module.statements.get(line, ()):
        loops = names.module.loops(statement)
        if not isinstance(statement, ast.Assign) or not loops or not isinstance(statement.targets[0], ast.Subscript):
            continue
        target = statement.targets[0]
        parts = (target.slice, statement.value)
        if _has_names(statement.value) and all(names.fixed(each, loops[0]) for each in parts):
            what = f"{short(target)} gets {short(statement.value)} each time round the loop"
            yield _Candidate(INVARIANT, f"{what}, and that does not change.", STORING)


def _one_by_one(names: Names, line: int) -> Iterator[_Candidate]:
    """Rows or elements of an array that a loop takes one by one, to compute with each."""
    for statement in names.module.statements.get(line, ()):
        if isinstance(statement, ast.For):
            for target, array in _taken(names, statement).items():
                reason = f"{target} is one row or element of {array} each time round the loop."
                yield _Candidate(SLICE, reason, ITERATING)
        for loop in names.module.loops(statement):
            taken = _taken(names, loop) if isinstance(loop, ast.For | ast.comprehension) else {}
            for target in sorted(_computed_with(names, statement) & taken.keys()):
                reason = f"{target} is one row or element of {taken[target]}: each gets a call of its own."
                yield _Candidate(SLICE, reason, EACH_ROW)


def _taken(names: Names, loop: ast.For | ast.comprehension) -> dict[str, str]:
    """The loop's own names that stand for rows or elements of arrays, with the arrays: also in zip and enumerate."""
    pairs = [(loop.target, loop.iter)]
    taken: dict[str, str] = {}
    while pairs:
        target, source = pairs.pop()
        function = names.called(source)
        if isinstance(target, ast.Name) and names.kind(source) in ARRAYS:
            taken[target.id] = short(source)
        elif isinstance(target, ast.Tuple) and isinstance(source, ast.Call) and function in ("zip", "enumerate"):
            targets = target.elts[1:] if function == "enumerate" else target.elts
            pairs += zip(targets, source.args, strict=False)
    return taken


def _computed_with(names: Names, statement: ast.stmt) -> set[str]:
    """The names that a statement's arithmetic and its calls of NumPy have as operands, those of products left out."""
    operands: list[ast.expr] = []
    for node in parts_of(statement):
        if isinstance(node, ast.BinOp | ast.AugAssign) and not isinstance(node.op, ast.MatMult):
            operands += [node.target, node.value] if isinstance(node, ast.AugAssign) else [node.left, node.right]
        elif isinstance(node, ast.Call):
            package, _, name = (names.called(node) or "").partition(".")
            operands += node.args if package == "numpy" and name in _ELEMENTWISE - {"dot"} else []
    return {each.id for each in operands if isinstance(each, ast.Name)}


def _neighbours(names: Names, line: int) -> Iterator[_Candidate]:
    """Elements or rows that change places with their neighbours, step by step."""
    for statement in names.module.statements.get(line, ()):
        loops = names.module.loops(statement)
        if not isinstance(statement, ast.Assign) or not loops or isinstance(statement.value, ast.Constant):
            continue
        targets = {name for loop in loops for name in _targets(loop)}
        stored = _indexed(statement.targets, targets)
        read = _indexed([statement.value], targets)
        for base in stored.keys() & read.keys():
            if len(stored[base] | read[base]) > 1 and len(stored[base]) > 1 and stored[base] & read[base]:
                reason = f"neighbours of {base} change places each time round the loop, one step at a time."
                yield _Candidate(ALGORITHM, reason, re.compile(""))


def _twice(names: Names, expressions: list[ast.expr], evidence: Evidence) -> Iterator[_Candidate]:
    """The same call more than once in a statement, or on the line and on the other one of the pairs."""
    calls = [node for node in expressions if isinstance(node, ast.Call) and (node.args or node.keywords)]
    calls = [node for node in calls if not draws(names, node)]
    texts = [(node, text) for node in calls if (text := spelled(node)) is not None]
    counts = Counter(text for _, text in texts)
    for node, text in texts:
        if counts[text] > 1:
            reason = f"{short(node)} is computed {counts[text]} times in one statement."
            yield _Candidate(MISUSE, reason, _runs(node, names.called(node)))
    other = evidence.partner_line
    if other is None or other == evidence.line:
        return
    on_other_line = {spelled(node) for node in _expressions(names, other) if isinstance(node, ast.Call)}
    for node, text in texts:
        if text in on_other_line:
            reason = f"{short(node)} is called with the same arguments on line {other}, too."
            yield _Candidate(SAME_CALL, reason, _runs(node, names.called(node)))


def _gets_others(names: Names, runs: Runs, evidence: Evidence) -> ast.expr | None:
    """A piece of work of a line that is not known to get the same operands each time; of several a call."""
    changing: list[tuple[bool, ast.expr]] = []
    for node in _work(names, evidence.line):
        found = runs.operands(node)
        if isinstance(node, ast.Call) and _is_repeatable(names, node, evidence) and found is Operands.OVERLAPPING:
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
    expressions = _expressions(names, line)
    # An element is stored into where nothing else is done.
    stores = not any(isinstance(node, ast.Call) for node in expressions)
    for node in expressions:
        indexed = isinstance(node, ast.Subscript) and (stores or isinstance(node.ctx, ast.Load))
        if _has_names(node) and (is_work(names, node) or indexed):
            yield node


def _counters(names: Names, loops: list[LoopNode]) -> set[str]:
    """The names that loops count with: those of ``range``, of ``enumerate``'s first, and of while loops."""
    counters = set[str]()
    for loop in loops:
        if isinstance(loop, ast.While):
            counters |= _targets(loop)
            continue
        function, target = names.called(loop.iter), loop.target
        if function == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[0]
        if function in ("range", "enumerate") and isinstance(target, ast.Name):
            counters.add(target.id)
    return counters


def _of_one_number(names: Names, function: str, call: ast.Call, targets: set[str], counters: set[str]) -> bool:
    """True if a function for arrays gets elements or the loop's counter, and no array or sequence beside them.

    What else a loop takes one by one may be arrays.
    """
    package, _, name = function.partition(".")
    if package != "numpy" or name not in _ELEMENTWISE:
        return False
    parts = [part for argument in call.args for part in ast.walk(argument)]
    subscripts = [part for part in parts if isinstance(part, ast.Subscript)]
    indexed = {id(each.value) for each in subscripts}
    indexes = {id(part) for each in subscripts for part in ast.walk(each.slice)}
    for part in parts:
        if isinstance(part, _SEQUENCES):
            return False
        if isinstance(part, ast.Name) and id(part) not in indexed:
            taken = part.id in targets - counters and id(part) not in indexes
            if taken or names.kind(part) in ARRAYS:
                return False
    return any(isinstance(part, ast.Name) and part.id in targets for part in parts)


def _runs(call: ast.Call, function: str | None) -> re.Pattern[str]:
    """The native functions that a call runs: those with its name, and those that all ufuncs run."""
    name = (function or dotted(call.func) or "").rpartition(".")[2]
    if not name and isinstance(call.func, ast.Attribute):
        name = call.func.attr
    if name in ("dot", "matmul"):
        return PRODUCTS
    own = rf"(?<![a-z]){re.escape(name)}" if name else "(?!)"
    return re.compile(f"{own}|{UFUNCS.pattern}|array_function|_vectorcall|implement", re.IGNORECASE)


def _own_functions(names: Names, node: ast.expr) -> re.Pattern[str]:
    """The native functions that an expression runs, and others do not."""
    if isinstance(node, ast.Subscript):
        return INDEXING
    if isinstance(node, ast.Call):
        name = (names.called(node) or dotted(node.func) or "").rpartition(".")[2]
        name = name or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        if name in ("dot", "matmul", "einsum", "inner"):
            return PRODUCTS
        return REDUCING if name in _REDUCTIONS else re.compile(rf"(?<![a-z]){re.escape(name)}" if name else "(?!)")
    if isinstance(node, ast.BinOp):
        return PRODUCTS if isinstance(node.op, ast.MatMult) else _OPERATIONS.get(type(node.op), _NONE)
    return _COMPARING if isinstance(node, ast.Compare) else _NONE


def _operations(node: ast.BinOp) -> Iterator[ast.BinOp]:
    """An operation and the operations that it is made of, the outer ones first; of very many the first."""
    waiting: list[ast.expr] = [node]
    for _ in range(MAX_OPERATIONS):
        if not waiting:
            return
        each = waiting.pop()
        if isinstance(each, ast.BinOp):
            yield each
            waiting += [each.left, each.right]


def _operands(node: ast.BinOp) -> list[ast.expr]:
    """Operands of an operation, and of those that it is made of."""
    sides = (side for each in _operations(node) for side in (each.left, each.right))
    return [side for side in sides if not isinstance(side, ast.BinOp)]


def _targets(loop: LoopNode) -> set[str]:
    """The names that a loop counts with; of a while loop those that it changes and tests."""
    if isinstance(loop, ast.While):
        tested = {node.id for node in ast.walk(loop.test) if isinstance(node, ast.Name)}
        return tested & {node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and _stored(node)}
    return {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _uses(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


def _has_no_calls(node: ast.AST) -> bool:
    return not any(isinstance(part, ast.Call) for part in ast.walk(node))


def _has_names(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) for part in ast.walk(node))


def _indexed(nodes: Sequence[ast.AST], targets: set[str]) -> dict[str, set[str]]:
    """Bases that are indexed with the loop's own names, with all that they are indexed with."""
    indexes: dict[str, set[str]] = {}
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Subscript) and _uses(part.slice, targets):
                places = part.slice.elts if isinstance(part.slice, ast.List) else [part.slice]
                base = spelled(part.value)
                if base is not None:
                    indexes.setdefault(base, set()).update(text for each in places if (text := spelled(each)))
    return indexes
