"""Rules for what is made as a whole where only a part of it is used: copies of which a slice is taken, all pairs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ...source_code.names import Names
from ...source_code.source import short, spelled
from .candidates import ALGORITHM, ANY, MISUSE, SLICE, Candidate, Evidence, expressions_of, is_operation_of_arrays
from .elements import is_matrix_product
from .kernels import OF_OBJECTS, is_of_objects
from .operands import Operands, Runs

_COPYING = frozenset(
    {
        "tobytes",
        "tolist",
        "to_list",
        "to_pylist",
        "to_numpy",
        "to_dict",
        "getvalue",
        "getdata",
        "encode",
        "split",
        "splitlines",
    }
)
"""Methods that copy all that has them."""
_COPYING_ATTRIBUTES = frozenset({"raw", "values"})
"""Attributes that copy all that has them: of buffers of ctypes, and of tables of several types."""
_COPYING_FUNCTIONS = frozenset({"list", "tuple", "sorted", "bytes", "bytearray", "numpy.array", "numpy.sort"})
_OF_ALL_PAIRS = re.compile(
    r"_similarity$|_kernel$|_distances$|^(cdist|pairwise_distances|distance_matrix|corrcoef|squareform)$"
)
"""Functions that compare each row of what they get with each row of it, or of another one."""
_SORTING = {"sorted": "min or max", "numpy.sort": "np.min or np.max", "numpy.argsort": "np.argmin or np.argmax"}
_SORT = re.compile(r"sort", re.IGNORECASE)
_VALUES = {
    "svd": (1, "svd(..., compute_uv=False)"),
    "eigh": (0, "eigvalsh"),
    "eig": (0, "eigvals"),
}
"""Functions that compute vectors beside the values, with the place of the values, and what computes those alone."""
_OF_GRAPHS = frozenset({"dijkstra", "shortest_path", "bellman_ford", "johnson"})
"""Functions of scipy.sparse.csgraph that find the ways from all nodes, unless ``indices`` says from which."""


def parts_of_copies(names: Names, runs: Runs, node: ast.expr) -> Iterator[Candidate]:
    """A slice or an element of a copy of all that there is, made anew each time: ``buffer.raw[a:b]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return
    copied = _copied(names, node.value)
    if copied is not None and runs.operands(copied) is Operands.SAME and runs.operands(node.slice) is not Operands.SAME:
        reason = f"{short(node.value)} copies all of {short(copied, 24)} each time, and a part of that is taken."
        remedy = (
            f"Make the copy once, or take the part of {short(copied, 24)} itself (memoryview for bytes and buffers)."
        )
        yield Candidate(SLICE, reason, ANY, remedy, lookup=True, by_source=True)


def _copied(names: Names, node: ast.expr) -> ast.expr | None:
    """The object that an expression copies; None if it copies none."""
    if isinstance(node, ast.Attribute):
        return node.value if node.attr in _COPYING_ATTRIBUTES and spelled(node.value) else None
    if not isinstance(node, ast.Call):
        return None
    if names.called(node) in _COPYING_FUNCTIONS:
        return node.args[0] if len(node.args) == 1 and spelled(node.args[0]) else None
    is_method = isinstance(node.func, ast.Attribute) and names.called(node) is None
    if is_method and isinstance(node.func, ast.Attribute) and node.func.attr in _COPYING and spelled(node.func.value):
        return node.func.value
    return None


def one_row_of_all(names: Names, node: ast.expr) -> Iterator[Candidate]:
    """One row that is all that is used of a matrix of all pairs: ``cosine_similarity(x)[i]``."""
    if not isinstance(node, ast.Call):
        return
    name = (names.called(node) or "").rpartition(".")[2]
    of_graph = name in _OF_GRAPHS and not any(each.arg in ("indices", "return_predecessors") for each in node.keywords)
    of_itself = len(node.args) == 1 or (len(node.args) == 2 and spelled(node.args[0]) == spelled(node.args[1]))
    if not (of_graph or (_OF_ALL_PAIRS.search(name) and of_itself)) or not node.args:
        return
    places = _places_of(names, node)
    indexes = {ast.unparse(each.slice) for each in places or ()}
    if places and len(indexes) == 1 and all(_is_one_row(names, each, node) for each in places):
        row = short(places[0])
        reason = f"{short(node)} computes all pairs, and only {row} of them is used."
        remedy = "Compute only that row: indices=... of scipy.sparse.csgraph, or the row as the first of two arguments."
        yield Candidate(SLICE, reason, ANY, remedy, within=True, spends=is_anything)


def part_of_product(names: Names, node: ast.expr) -> Iterator[Candidate]:
    """The diagonal, the trace or one row that is all that is used of a product of matrices."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        product = node.value if _is_one_row(names, node, node) else None
    elif isinstance(node, ast.Call) and names.called(node) in ("numpy.diag", "numpy.trace", "numpy.diagonal"):
        product = node.args[0] if node.args else None
    elif (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("trace", "diagonal")
    ):
        product = node.func.value
    else:
        return
    if isinstance(product, ast.BinOp) and isinstance(product.op, ast.MatMult):
        left, right = short(product.left, 20), short(product.right, 20)
        reason = f"{short(node)} computes all of {left} @ {right}, and only a part of it is used."
        remedy = "Compute that part alone: (A * B.T).sum(axis=1) is the diagonal of A @ B, and A[i] @ B its row."
        yield Candidate(SLICE, reason, ANY, remedy, within=True, spends=is_matrix_product)


def end_of_sorted(names: Names, node: ast.expr) -> Iterator[Candidate]:
    """The first or last element that is all that is used of what was sorted for it."""
    if (
        not isinstance(node, ast.Subscript)
        or not isinstance(node.ctx, ast.Load)
        or not isinstance(node.value, ast.Call)
    ):
        return
    function = names.called(node.value)
    if function in _SORTING and ast.unparse(node.slice) in ("0", "-1"):
        reason = f"{short(node)} sorts all for one element."
        remedy = f"Search for it: {_SORTING[function]}, without a sort."
        # Of what is sorted it is no matter how its elements are taken.
        yield Candidate(ALGORITHM, reason, ANY, remedy, weight=1.5, within=True, spends=is_sort)


def is_sort(path: Sequence[str]) -> bool:
    """True for the native path of a sort."""
    return any(map(_SORT.search, path))


def unused_vectors(names: Names, node: ast.expr) -> Iterator[Candidate]:
    """Vectors that are computed beside the values, and not used: ``_, s, _ = np.linalg.svd(a)``."""
    if not isinstance(node, ast.Call) or any(each.arg in ("compute_uv", "eigvals_only") for each in node.keywords):
        return
    module, _, name = (names.called(node) or "").rpartition(".")
    place, instead = _VALUES.get(name, (0, "")) if module in ("numpy.linalg", "scipy.linalg") else (0, "")
    around = names.module.parent.get(node)
    if isinstance(around, ast.Subscript) and around.value is node:
        is_alone = ast.unparse(around.slice) == str(place)
    elif isinstance(around, ast.Assign) and isinstance(around.targets[0], ast.Tuple):
        target = around.targets[0]
        scope = names.module.scope(node)
        loaded = {each.id for each in ast.walk(scope) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        others = [each for at, each in enumerate(target.elts) if at != place]
        is_alone = all(isinstance(each, ast.Name) and each.id not in loaded for each in others)
    else:
        is_alone = False
    if instead and is_alone:
        reason = f"{short(node)} computes vectors as well, and only the values are used."
        yield Candidate(SLICE, reason, ANY, f"Compute the values alone: {instead}.", within=True, spends=is_anything)


def is_anything(path: Sequence[str]) -> bool:
    """True for the native path of a line that does nothing else."""
    return bool(path)


def _places_of(names: Names, call: ast.Call) -> list[ast.Subscript] | None:
    """The subscripts that are all that is done with the result of a call; None if there is something else."""
    around = names.module.parent.get(call)
    if isinstance(around, ast.Subscript) and around.value is call:
        return [around]
    if not isinstance(around, ast.Assign) or len(around.targets) != 1 or not isinstance(around.targets[0], ast.Name):
        return None
    target = around.targets[0]
    scope = names.module.scope(target)
    uses = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == target.id]
    if sum(not isinstance(each.ctx, ast.Load) for each in uses) != 1:
        return None
    places = [names.module.parent.get(each) for each in uses if isinstance(each.ctx, ast.Load)]
    subscripts = [each for each in places if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load)]
    return subscripts if len(subscripts) == len(places) else None


def _is_one_row(names: Names, node: ast.Subscript, call: ast.expr) -> bool:
    """True for one index that is no slice, list or array, in no loop that the call is not in."""
    first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    is_single = isinstance(first, ast.Name | ast.Attribute) or (
        isinstance(first, ast.Constant) and isinstance(first.value, int)
    )
    if isinstance(first, ast.Name):
        # A name for several, or for a mask, is bound to a call or a comparison of arrays.
        values = names.binding(first.id, first)
        is_single = all(value is None or isinstance(value, ast.Constant) for value in values)
    return is_single and names.module.loops(node) == names.module.loops(call)


def parts_of_wholes(names: Names, runs: Runs, node: ast.expr) -> Iterator[Candidate]:
    """All of these that an expression may be."""
    yield from parts_of_copies(names, runs, node)
    yield from one_row_of_all(names, node)
    yield from part_of_product(names, node)
    yield from end_of_sorted(names, node)
    yield from unused_vectors(names, node)


def of_objects(names: Names, evidence: Evidence) -> Iterator[Candidate]:
    """Arithmetic with arrays of Python's objects: known by NumPy's loops, whatever the line."""
    if not any(OF_OBJECTS.search(name) for path in evidence.paths for name in path):
        return
    node = next((each for each in expressions_of(names, evidence.line) if is_operation_of_arrays(each)), None)
    if node is not None:
        reason = f"{short(node)} works with an array of Python's objects (dtype object), one by one."
        remedy = "Convert it to numbers once: astype(float), or the numeric columns alone before values or to_numpy()."
        yield Candidate(MISUSE, reason, OF_OBJECTS, remedy, within=True, spends=is_of_objects)
