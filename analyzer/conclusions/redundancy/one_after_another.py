"""Rules for calls that get the same data each time and one number after another, where one call is for all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ...source_code.names import Names
from ...source_code.source import LoopNode, dotted, names_in, short, spelled
from .candidates import (
    ALGORITHM,
    ANY,
    INDEXING,
    MATRIX_PRODUCTS,
    MISUSE,
    REDUCTIONS,
    Candidate,
    all_operands,
    targets_of,
    uses,
)
from .elements import counters_of
from .operands import Operands, Runs

_LEVELS = frozenset({"quantile", "percentile", "nanquantile", "nanpercentile", "scoreatpercentile"})
"""Functions and methods that sort their data for a level, or for many."""
_SOLVING = frozenset({"solve", "lstsq", "spsolve", "solve_banded", "solveh_banded"})
_RESIZING = frozenset({"resize", "thumbnail", "zoom", "rescale", "resample"})
"""Methods and functions that make a smaller copy of a picture, or of a table, by going through all of it."""
_POWERS = frozenset({"numpy.power", "numpy.linalg.matrix_power", "numpy.float_power"})
_CONVERTING = frozenset({"struct.unpack", "struct.unpack_from", "int.from_bytes"})
_CONVERSION = re.compile(r"unpack|from_bytes|FromByteArray|[nlb][pu]_")
_SELECTION = re.compile(r"sort|partition|select", re.IGNORECASE)
_POWER = re.compile(r"(?<![a-z])pow(er)?(?![a-z])", re.IGNORECASE)
_PRODUCTS = frozenset({"dot", "vdot", "inner", "tensordot", "einsum"})
CORRELATE = (
    "Work on all places at once: scipy.signal.convolve2d, scipy.ndimage.correlate or np.convolve, or "
    "np.lib.stride_tricks.sliding_window_view with one product."
)
NEXT_POWER = (
    "Keep the last power and multiply it once more (Horner's scheme for a polynomial; np.vander for all powers)."
)


def factored_again(names: Names, runs: Runs, node: ast.expr) -> Iterator[Candidate]:
    """Equations of which one side alone changes: ``solve(A, b)`` divides ``A`` into factors each time."""
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return
    module, _, name = (names.called(node) or "").rpartition(".")
    if name not in _SOLVING or not module.endswith("linalg"):
        return
    matrix, other = node.args[:2]
    if runs.operands(matrix) is Operands.SAME and runs.operands(other) in (Operands.OTHER, Operands.UNKNOWN):
        text = short(matrix, 24)
        reason = (
            f"{short(node)} divides {text} into factors each time, and only the other side of the equation changes."
        )
        remedy = (
            f"Keep the factors of {text}: lu_factor or cho_factor of scipy.linalg, splu of scipy.sparse.linalg, pinv."
        )
        yield Candidate(ALGORITHM, reason, ANY, remedy, kernels=True)


def one_after_another(names: Names, runs: Runs, node: ast.expr, loops: list[LoopNode]) -> Iterator[Candidate]:
    """All of them."""
    if isinstance(node, ast.Call):
        yield from _levels(names, runs, node)
        yield from _sizes(names, runs, node)
        yield from _correlations(names, runs, node)
        yield from _conversions(names, node, loops)
    yield from _powers(names, runs, node, loops)
    if isinstance(node, ast.Compare):
        yield from _groups(names, runs, node, loops)
        yield from _totals(names, runs, node, loops)


def _levels(names: Names, runs: Runs, call: ast.Call) -> Iterator[Candidate]:
    """Quantiles of the same data: it is sorted, or divided, for each again."""
    function = names.called(call)
    method = call.func if isinstance(call.func, ast.Attribute) and function is None else None
    name = method.attr if method is not None else (function or "").rpartition(".")[2]
    given = [*([method.value] if method is not None else []), *call.args]
    levels = [*given[1:2], *(each.value for each in call.keywords if each.arg in ("q", "per"))]
    if name not in _LEVELS or not given or not levels or runs.operands(data := given[0]) is not Operands.SAME:
        return
    if runs.operands(levels[0]) is not Operands.SAME:
        reason = f"{short(call)} sorts or divides all of {short(data, 24)} for one level, each time."
        remedy = f"Give {name} a list of all levels: one call then goes through the data once."
        yield Candidate(ALGORITHM, reason, ANY, remedy, within=True, spends=_is_selection)


def _sizes(names: Names, runs: Runs, call: ast.Call) -> Iterator[Candidate]:
    """Smaller copies of the same, one size after another: each is made of all of it."""
    function = names.called(call)
    method = call.func if isinstance(call.func, ast.Attribute) and function is None else None
    name = method.attr if method is not None else (function or "").rpartition(".")[2]
    given = [*([method.value] if method is not None else []), *call.args, *(each.value for each in call.keywords)]
    if name not in _RESIZING or (function or "").startswith("numpy.") or len(given) < 2:
        return
    whole, *sizes = given
    if runs.operands(whole) is Operands.SAME and any(runs.operands(each) is Operands.OTHER for each in sizes):
        reason = f"{short(call)} goes through all of {short(whole, 24)} for one size, each time."
        remedy = "Make each smaller copy of the one before, from the largest down."
        yield Candidate(ALGORITHM, reason, ANY, remedy, kernels=True)


def _is_selection(path: Sequence[str]) -> bool:
    """True for a native path that sorts, or finds what is at a place of what is sorted."""
    return any(map(_SELECTION.search, path))


def _powers(names: Names, runs: Runs, node: ast.expr, loops: list[LoopNode]) -> Iterator[Candidate]:
    """Powers of the same, of which a loop counts the exponents: each begins anew."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = node.left, node.right
    elif isinstance(node, ast.Call) and names.called(node) in _POWERS and len(node.args) == 2:
        base, exponent = node.args
    else:
        return
    used = names_in(exponent)
    counts = bool(used) and used <= counters_of(names, loops) and not _has_calls(exponent)
    if counts and not isinstance(base, ast.Constant) and runs.operands(base) is Operands.SAME:
        reason = f"{short(node)} computes each power of {short(base, 24)} from the start, and not from the last one."
        yield Candidate(ALGORITHM, reason, ANY, NEXT_POWER, within=True, spends=_is_power)


def _is_power(path: Sequence[str]) -> bool:
    """True for a native path of powers, or of products of matrices, of which those of matrices are made."""
    return any(_POWER.search(name) or MATRIX_PRODUCTS.search(name) for name in path)


def _has_calls(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _correlations(names: Names, runs: Runs, call: ast.Call) -> Iterator[Candidate]:
    """Sums of products of a window that moves with weights that stay: ``np.sum(x[i : i + n] * weights)``."""
    method = call.func if isinstance(call.func, ast.Attribute) and names.called(call) is None else None
    name = method.attr if method is not None else (names.called(call) or "").rpartition(".")[2]
    given = [*([method.value] if method is not None else []), *call.args]
    if name in _PRODUCTS:
        factors = given
    elif name in REDUCTIONS and given and isinstance(given[0], ast.BinOp) and isinstance(given[0].op, ast.Mult):
        factors = all_operands(given[0])
    else:
        return
    windows = [window for each in factors if (window := _window(names, each)) is not None]
    moving = [each for each in windows if runs.operands(each) is Operands.OVERLAPPING]
    others = [each for each in factors if _window(names, each) is None]
    if moving and others and all(runs.operands(each) is Operands.SAME for each in others):
        reason = f"{short(call)} is one place of a correlation: only the bounds of {short(moving[0], 24)} move."
        yield Candidate(MISUSE, reason, ANY, CORRELATE)


def _conversions(names: Names, call: ast.Call, loops: list[LoopNode]) -> Iterator[Candidate]:
    """Numbers that are made of bytes one by one: ``struct.unpack("<h", data[i : i + 2])``."""
    targets = {name for loop in loops for name in targets_of(loop)}
    function = names.called(call) or dotted(call.func)
    if function not in _CONVERTING or not call.args:
        return
    pieces = [each for each in call.args if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Slice)]
    by_place = function == "struct.unpack_from" and any(uses(each, targets) for each in call.args[2:])
    if by_place or any(uses(each.slice, targets) for each in pieces):
        reason = f"{short(call)} converts one piece each time round the loop: the call is dearer than its work."
        remedy = "Convert all with one call: struct.iter_unpack, array.array or np.frombuffer."
        yield Candidate(MISUSE, reason, ANY, remedy, spends=_is_conversion)


def _is_conversion(path: Sequence[str]) -> bool:
    """True for a native path that takes a piece of bytes, or makes numbers of it."""
    return any(_CONVERSION.search(name) or INDEXING.search(name) for name in path)


def _window(names: Names, node: ast.expr) -> ast.Subscript | None:
    """A slice of an array, or what a name alone stands for if that is one."""
    values = names.binding(node.id, node) if isinstance(node, ast.Name) else [node]
    value = values[0] if len(values) == 1 else None
    if not isinstance(value, ast.Subscript):
        return None
    parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
    return value if any(isinstance(each, ast.Slice) for each in parts) else None


def _groups(names: Names, runs: Runs, node: ast.Compare, loops: list[LoopNode]) -> Iterator[Candidate]:
    """Rows of a table that a column's mask selects for one group after another: ``frame[frame["key"] == key]``."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
        return
    targets = {name for loop in loops if not isinstance(loop, ast.While) for name in targets_of(loop)}
    sides = [node.left, node.comparators[0]]
    column = next((each for each in sides if _is_column(each)), None)
    value = next((each for each in sides if isinstance(each, ast.Name) and each.id in targets), None)
    if column is None or value is None or not names.imports("pandas") or runs.operands(column) is not Operands.SAME:
        return
    around = names.module.parent.get(node)
    if isinstance(around, ast.Tuple):  # frame.loc[mask, column]
        around = names.module.parent.get(around)
    table = spelled(column.value) if isinstance(column, ast.Subscript | ast.Attribute) else None
    if isinstance(around, ast.Subscript) and not uses(around.value, targets):
        selected = around.value.value if isinstance(around.value, ast.Attribute) else around.value
        if table is not None and spelled(selected) == table:
            reason = f"{short(around)} goes through all of {short(column, 24)} for one group, each time."
            remedy = f"Divide the table once for all groups: {table}.groupby(...), and loop over its groups."
            yield Candidate(ALGORITHM, reason, ANY, remedy, kernels=True)


def _totals(names: Names, runs: Runs, node: ast.Compare, loops: list[LoopNode]) -> Iterator[Candidate]:
    """Sums of all elements up to a bound that a loop counts: ``amounts[days <= day].sum()``."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return
    counters = counters_of(names, loops)
    sides = [node.left, node.comparators[0]]
    bound = next((each for each in sides if isinstance(each, ast.Name) and each.id in counters), None)
    keys = next((each for each in sides if each is not bound), None)
    around = names.module.parent.get(node)
    if bound is None or keys is None or runs.operands(keys) is not Operands.SAME or isinstance(keys, ast.Constant):
        return
    if isinstance(around, ast.Subscript) and around.slice is node and _is_reduced(names, around):
        reason = f"{short(around)} goes through all of {short(keys, 24)} for one bound, each time."
        remedy = "Add up what is between two bounds, and then those sums: np.cumsum(np.bincount(keys, values))."
        yield Candidate(ALGORITHM, reason, ANY, remedy, kernels=True)


def _is_reduced(names: Names, node: ast.expr) -> bool:
    """True if a sum or the like gets what is selected, and nothing else does."""
    around = names.module.parent.get(node)
    if isinstance(around, ast.Attribute):
        return around.attr in REDUCTIONS
    return isinstance(around, ast.Call) and (names.called(around) or "").rpartition(".")[2] in REDUCTIONS | {"len"}


def _is_column(node: ast.expr) -> bool:
    """True for ``frame["name"]`` and ``frame.name``."""
    if isinstance(node, ast.Attribute):
        return True
    return (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    )
