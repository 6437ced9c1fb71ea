"""Expressions that fit a category, with the native functions that they run: what all rules are made of."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ...source_code.names import Names
from ...source_code.source import LoopNode, dotted, names_in
from .effects import BUILT, is_work
from .operands import Caller

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
Kind = Literal["load", "store", "result"]
"""A result is a block of memory that a call has filled with the same as an earlier one."""
LEAST_PART = 0.2
"""Of the pairs, that the paths of a category have to be."""
MAX_EXPRESSIONS = 400
MAX_OPERATIONS = 100
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
MATRIX_PRODUCTS = re.compile(r"gemm|symm|syrk|trmm|matmul_matrixmatrix", re.IGNORECASE)
"""Native functions of products of two matrices, and not of vectors."""
REDUCING = re.compile(r"[Rr]educ(e|tion)|pairwise_sum|_(Mean|Sum|Std|Any|All|Max|Min)\b")
"""Native functions that sums and their like run."""
REDUCTIONS = frozenset({"sum", "mean", "std", "var", "max", "min", "any", "all", "prod", "amax", "amin", "average"})
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
_FILLING = frozenset({"arange", "zeros", "ones", "full", "empty", "eye", "identity"})
"""Functions of NumPy that fill memory, and compute nothing: a copy of what was kept would cost as much."""
_SQUARES = frozenset({"eye", "identity"})
"""Those of them that fill a whole matrix, of which a row may be all that is wanted."""
NONE = re.compile("(?!)")
ANY = re.compile("")


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
    moves: bool = False
    """True if they all have one size."""
    own: bool = False
    """True if it is the interpreter itself that goes through elements, and no library."""


@dataclass(frozen=True)
class Candidate:
    """An expression that fits a category, and what supports it."""

    category: str
    reason: str
    functions: re.Pattern[str]
    remedy: str | None = None
    """None: the category's usual one."""
    kernels: bool = False
    """True if it is supported only by accesses of kernels."""
    grows: bool = False
    """True if it is supported by the sizes of blocks as well: they grow, or are all one."""
    weight: float = 1.0
    """Of the pairs that it explains."""
    own: re.Pattern[str] | None = None
    """The functions that nothing else runs: these alone support it on a line with work that changes. None: all do."""
    lookup: bool = False
    """True for an element that is all the work of its line: what is no kernel runs for it."""
    by_source: bool = False
    """True if it needs few pairs."""
    within: bool = False
    """True for a call that calls back for each element: what repeats within it is its misuse."""
    spends: Callable[[Sequence[str]], bool] | None = None
    """True for the native paths that it runs, where the time in them shows it as well as pairs."""
    calls: bool = False
    """True for a call: on a line whose other work is operators, what is not theirs is its."""


def runs_one_of(functions: re.Pattern[str], path: Sequence[str]) -> bool:
    """True if a native path has one of these functions; reading an element is not storing into one."""
    reads = functions is INDEXING
    return any(map(functions.search, path)) and not (reads and any(map(STORING_INDEX.search, path)))


def expressions_of(names: Names, line: int) -> list[ast.expr]:
    """Those of a line; of very many the first."""
    expressions = names.module.expressions(line)
    return [node for node, _ in zip(expressions, range(MAX_EXPRESSIONS), strict=False)]


def is_repeatable(names: Names, node: ast.Call, evidence: Evidence) -> bool:
    """True for a call that does work of a library with something: one of nothing gives no clue, a fill is none."""
    method = isinstance(node.func, ast.Attribute) and names.called(node) is None
    function = names.called(node)
    is_built = (evidence.kind == "result" or evidence.own) and function in BUILT
    package, _, name = (function or "").rpartition(".")
    if package == "numpy" and name in _FILLING and not (name in _SQUARES and _is_indexed(names, node)):
        return False
    return (is_built or is_work(names, node)) and bool(node.args or node.keywords or method)


def _is_indexed(names: Names, call: ast.Call) -> bool:
    around = names.module.parent.get(call)
    return isinstance(around, ast.Subscript) and around.value is call and isinstance(around.ctx, ast.Load)


def functions_of(call: ast.Call, function: str | None) -> re.Pattern[str]:
    """The native functions that a call runs: those with its name, and those that all ufuncs run."""
    name = (function or dotted(call.func) or "").rpartition(".")[2]
    if not name and isinstance(call.func, ast.Attribute):
        name = call.func.attr
    if name in ("dot", "matmul"):
        return PRODUCTS
    own = rf"(?<![a-z]){re.escape(name)}" if name else "(?!)"
    return re.compile(f"{own}|{UFUNCS.pattern}|array_function|_vectorcall|implement", re.IGNORECASE)


def own_functions_of(names: Names, node: ast.expr) -> re.Pattern[str]:
    """The native functions that an expression runs, and others do not."""
    if isinstance(node, ast.Subscript):
        return INDEXING
    if isinstance(node, ast.Call):
        name = (names.called(node) or dotted(node.func) or "").rpartition(".")[2]
        name = name or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        if name in ("dot", "matmul", "einsum", "inner"):
            return PRODUCTS
        if name in REDUCTIONS and names.called(node) not in BUILT:
            return REDUCING
        return re.compile(rf"(?<![a-z]){re.escape(name)}" if name else "(?!)")
    if isinstance(node, ast.BinOp):
        return PRODUCTS if isinstance(node.op, ast.MatMult) else _OPERATIONS.get(type(node.op), NONE)
    return _COMPARING if isinstance(node, ast.Compare) else NONE


def operations_of(node: ast.BinOp) -> Iterator[ast.BinOp]:
    """An operation and the operations that it is made of, the outer ones first; of very many the first."""
    waiting: list[ast.expr] = [node]
    for _ in range(MAX_OPERATIONS):
        if not waiting:
            return
        each = waiting.pop()
        if isinstance(each, ast.BinOp):
            yield each
            waiting += [each.left, each.right]


def all_operands(node: ast.BinOp) -> list[ast.expr]:
    """Operands of an operation, and of those that it is made of."""
    sides = (side for each in operations_of(node) for side in (each.left, each.right))
    return [side for side in sides if not isinstance(side, ast.BinOp)]


def targets_of(loop: LoopNode) -> set[str]:
    """The names that a loop counts with; of a while loop those that it changes and tests."""
    if isinstance(loop, ast.While):
        tested = names_in(loop.test)
        return tested & {node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and _stored(node)}
    return names_in(loop.target)


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def uses(node: ast.AST, names: set[str]) -> bool:
    """True if some of these names are in an expression."""
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


def is_operation_of_arrays(node: ast.AST) -> bool:
    """True for an operation, or a call: what may compute with arrays."""
    return isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call)


def has_no_calls(node: ast.AST) -> bool:
    """True for an expression of operators alone."""
    return not any(isinstance(part, ast.Call) for part in ast.walk(node))


def has_names(node: ast.AST) -> bool:
    """True unless an expression is of constants alone."""
    return any(isinstance(part, ast.Name) for part in ast.walk(node))
