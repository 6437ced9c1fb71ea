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
from dataclasses import dataclass

from tachograph.format.enumerations import Access

from ...source_code.names import ARRAYS, PURE_METHODS, Names
from ...source_code.source import LoopNode, dotted, parts_of, short, spelled
from .same_arguments import differs, why_same

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

LEAST_PART = 0.2
"""Of the pairs, that the paths of a category have to be."""
MAX_EXPRESSIONS = 400
MAX_OPERATIONS = 100

INDEXING = re.compile(
    r"subscript|array_item|getitem|setitem|prepare_index|unpack_ind|get_item|set_item|_index\b|mapiter"
)
"""Functions of NumPy, pandas and Cython behind ``x[i]``."""
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

_ELEMENTWISE = frozenset(
    {
        *("abs", "absolute", "square", "sqrt", "power", "exp", "log", "log2", "log10", "sin", "cos", "tan", "floor"),
        *("ceil", "round", "maximum", "minimum", "sign", "add", "multiply", "subtract", "divide", "mod", "fabs", "sum"),
        *("array", "asarray", "prod", "mean", "dot", "clip", "arctan2", "arctan", "tanh", "hypot", "isnan"),
    }
)
"""Functions of NumPy that are made for arrays, and dear for one number."""

_SEQUENCES = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Slice)


@dataclass(frozen=True)
class Evidence:
    """Measurements of a redundancy. ``paths`` has the native functions of both accesses of each redundant pair."""

    kind: Access
    paths: Sequence[Sequence[str]]
    line: int
    partner_line: int | None
    """None: another file's, or not known."""
    callers: Sequence[int] = ()
    """Lines of the same file from which the line's function was called, the innermost first."""


@dataclass(frozen=True)
class Verdict:
    """The category with its reason; None where the rules do not decide."""

    category: str | None
    reason: str
    excused: bool = False
    """True if the line gets other operands each time round: reading some of them again is no repetition of work."""


@dataclass(frozen=True)
class _Candidate:
    category: str
    reason: str
    functions: re.Pattern[str]


def categorise(names: Names | None, evidence: Evidence) -> Verdict:
    """The category of a finding on a line; ``names`` is None where its source is not known."""
    if names is None:
        return Verdict(None, "Which kind of repetition it is cannot be told without the source.")
    candidates = list(_candidates(names, evidence))
    weights: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for each in candidates:
        part = _part(each.functions, evidence.paths)
        if part > weights.get(each.category, 0.0):
            weights[each.category], reasons[each.category] = part, each.reason
    best = max(weights, key=lambda category: weights[category], default=None)
    if best is not None and weights[best] >= LEAST_PART:
        return Verdict(best, reasons[best])
    excused = evidence.kind is Access.LOAD and _operands_change(names, evidence)
    return Verdict(None, "Which kind of repetition it is was not decided.", excused)


def _part(functions: re.Pattern[str], paths: Sequence[Sequence[str]]) -> float:
    return sum(any(map(functions.search, path)) for path in paths) / len(paths) if paths else 0.0


def _expressions(names: Names, line: int) -> list[ast.expr]:
    expressions = names.module.expressions(line)
    return [node for node, _ in zip(expressions, range(MAX_EXPRESSIONS), strict=False)]


def _candidates(names: Names, evidence: Evidence) -> Iterator[_Candidate]:
    expressions = _expressions(names, evidence.line)
    yield from _neighbours(names, evidence.line)  # they are indexed, too: the first of two equal ones is taken
    yield from _stored_again(names, evidence.line)
    for node in expressions:
        loops = names.module.loops(node)
        if loops:
            yield from _in_loop(names, node, loops)
        elif isinstance(node, ast.Call):
            reason = why_same(names, node, evidence.callers)
            if reason is not None:
                text = f"{short(node)} gets nothing but what its function is called with, and {reason}"
                yield _Candidate(SAME_CALL, text, _runs(node, names.called(node)))
    yield from _twice(names, expressions, evidence)
    yield from _one_by_one(names, evidence.line)


def _in_loop(names: Names, node: ast.expr, loops: list[LoopNode]) -> Iterator[_Candidate]:
    targets = {name for loop in loops for name in _targets(loop)}
    if isinstance(node, ast.Subscript) and _uses(node.slice, targets):
        reason = f"{short(node)} is looked up each time round the loop, with all checks of the array."
        yield _Candidate(SLICE, reason, INDEXING)
    if isinstance(node, ast.Call):
        function = names.called(node)
        if _invariant(names, node, loops[0]):
            reason = f"{short(node)} is computed each time round the loop, and nothing in it changes there."
            yield _Candidate(INVARIANT, reason, _runs(node, function))
        elif function is not None and _of_one_number(names, function, node, targets, _counters(names, loops)):
            reason = f"{short(node)} gets one number each time round the loop: the call is dearer than its work."
            yield _Candidate(MISUSE, reason, _runs(node, function))
    if isinstance(node, ast.BinOp) and not isinstance(names.module.parent.get(node), ast.BinOp):
        for part in _operations(node):
            if _has_names(part) and names.fixed(part, loops[0]):
                reason = f"{short(part)} is computed each time round the loop, and nothing in it changes there."
                yield _Candidate(INVARIANT, reason, PRODUCTS if isinstance(part.op, ast.MatMult) else ARITHMETIC)
            elif (products := _multiplied_out(names, part, loops[0])) is not None:
                reason = f"{products}, of {short(part)} multiplied out, do not change in the loop."
                yield _Candidate(INVARIANT, reason, PRODUCTS)


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


def _operands_change(names: Names, evidence: Evidence) -> bool:
    """True if all calls of a line get other arguments each time round its loop, or in each call of its function."""
    changes = False
    for node in _expressions(names, evidence.line):
        loops = names.module.loops(node)
        work = isinstance(node, ast.Call | ast.BinOp | ast.Compare | ast.UnaryOp)
        if not _has_names(node) or not (work or (isinstance(node, ast.Subscript) and not loops)):
            continue
        changes = True
        if _invariant(names, node, loops[0]) if loops else not differs(names, node, evidence.callers):
            return False
    return changes


def _invariant(names: Names, node: ast.expr, loop: LoopNode) -> bool:
    """True if a call, or an expression with calls, gets the same arguments each time round a loop."""
    if not isinstance(node, ast.Call):
        return _has_names(node) and names.fixed(node, loop)
    function = names.called(node)
    receiver = node.func.value if isinstance(node.func, ast.Attribute) and function is None else None
    if receiver is None and (function is None or function.partition(".")[0] not in names.modules.values()):
        return False
    if receiver is not None and not (
        isinstance(node.func, ast.Attribute) and node.func.attr in PURE_METHODS and names.fixed(receiver, loop)
    ):
        return False
    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    if not parts and receiver is None:
        return False
    return all(_unchanged(names, part, loop) for part in parts)


def _unchanged(names: Names, node: ast.expr, loop: LoopNode) -> bool:
    """True if an argument is the same each time round: a constant too, and arithmetic with calls in it."""
    if isinstance(node, ast.Constant) or names.fixed(node, loop):
        return True
    parts = _operands(node) if isinstance(node, ast.BinOp) else [node]
    return all(
        isinstance(part, ast.Constant) or names.fixed(part, loop) or _invariant(names, part, loop) for part in parts
    )


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
