"""Rules for single elements: arrays and tables of which a loop takes one after another, and calls with one number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ...source_code.names import ARRAYS, Names
from ...source_code.source import LoopNode, dotted, names_in, parts_of, short, spelled
from .candidates import (
    ANY,
    ARITHMETIC,
    INDEXING,
    LEAST_PART,
    MATRIX_PRODUCTS,
    MISUSE,
    SLICE,
    STORING_INDEX,
    UFUNCS,
    Candidate,
    Evidence,
    expressions_of,
    targets_of,
    uses,
)
from .effects import parameters_of
from .kernels import ITERATING as ITERATED
from .kernels import is_kernel, is_of_number
from .operands import Operands, Runs, call_of

WHOLE = "Work on all elements with one call: an array of them (np.asarray), or a function of the library for the whole."
COLUMNS = (
    "Compute with whole columns: one operation is then one call for all rows (np.where for what depends on a row)."
)
ADD_UP = (
    "Add up all of them with one call: np.bincount(indexes, weights) for counts and sums, np.add.at or np.maximum.at "
    "for the rest; np.ravel_multi_index makes one index of several."
)
COLLECT = (
    "Collect the indices and values, and make the matrix of all of them at once: coo_matrix((values, (rows, columns))) "
    "adds up what is for one place."
)
BY_ARRAYS = "Write the function with operations on whole arrays: np.where or np.select for what depends on an element."
ITERATING = re.compile(r"array_(item|iter)|seqiter|iter_iternext|subscript", re.IGNORECASE)
"""Native functions that take the next row of an array."""
TAKING_ELEMENT = re.compile(r"^(array_item|PyArray_Scalar)$")
"""Native functions that make an object of an array's element."""
FOR_BOTH = re.compile(f"{INDEXING.pattern}|{STORING_INDEX.pattern}")
"""Native functions of lookups for reading or for storing."""
OF_MANY = re.compile(r"mapiter|boolean|gather|index_select|index_\w*kernel|take_?\d|fasttake", re.IGNORECASE)
"""Native functions that take or set as many elements as an array of indexes, or a mask, says."""
EACH_ROW = re.compile(f"{ARITHMETIC.pattern}|{UFUNCS.pattern}", re.IGNORECASE)
_ELEMENTWISE = frozenset(
    {
        *("abs", "absolute", "square", "sqrt", "power", "exp", "log", "log2", "log10", "sin", "cos", "tan", "floor"),
        *("ceil", "round", "maximum", "minimum", "sign", "add", "multiply", "subtract", "divide", "mod", "fabs", "sum"),
        *("array", "asarray", "prod", "mean", "dot", "clip", "arctan2", "arctan", "tanh", "hypot", "isnan"),
    }
)
"""Functions of NumPy that are made for arrays, and dear for one number."""
_BY_ELEMENT = frozenset(
    {
        *("sum", "max", "min", "any", "all", "list", "tuple", "set", "sorted", "map", "enumerate", "zip"),
        *("collections.Counter", "collections.deque", "math.fsum", "math.prod", "statistics.fmean"),
    }
)
"""Functions of Python and its standard library that iterate over what they get."""
_OF_ARRAYS = {"sum": "sum", "max": "max", "min": "min", "any": "any", "all": "all", "sorted": "sort", "set": "unique"}
_OF_ARRAYS |= {"math.fsum": "sum", "math.prod": "prod", "statistics.fmean": "mean"}
_PLACE_OF_SIZE = {
    **dict.fromkeys(("random", "random_sample", "standard_normal", "standard_exponential", "rand", "randn"), 0),
    **dict.fromkeys(("choice", "exponential", "poisson", "geometric"), 1),
    **dict.fromkeys(("integers", "randint", "normal", "uniform", "binomial", "gamma", "beta", "lognormal"), 2),
}
"""The position of the argument that says how many numbers a function of NumPy's generators draws."""
_MADE = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PLACES = frozenset({"iloc", "loc", "iat", "at"})
"""Attributes of pandas' objects by which elements are looked up."""
ELEMENT_METHODS = frozenset({"getpixel", "putpixel", "item", "itemset", "getrow", "getcol"})
"""Methods that take or set one element."""
_OF_ALL_PAIRS = frozenset({"cdist", "pdist", "squareform", "directed_hausdorff"})
"""Functions of scipy.spatial.distance that get many vectors at once."""
_OF_PAIRS = frozenset({"corr", "cov", "corrcoef", "pearsonr", "spearmanr", "kendalltau"})
"""Functions and methods that get two variables, where one call is for all pairs of them."""
_OF_BATCHES = frozenset(
    {
        *("predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples", "kneighbors"),
        *("transform", "inverse_transform", "radius_neighbors", "staged_predict"),
    }
)
"""Methods of models that get many rows at once."""
MAX_STEPS = 6
"""Names that stand for one another, and calls, up to a row."""
_SPARSE = re.compile(r"scipy\.sparse\.(cs[rc]|bsr|coo|dia)_(matrix|array)$")
_CONVERTING = frozenset({"to_datetime", "to_numeric", "to_timedelta"})
_WRAPPING = frozenset({"numpy.vectorize", "numpy.frompyfunc"})
"""They make a function for arrays of one for single elements."""
_OF_DIAGONALS = frozenset({"numpy.diag", "numpy.diagflat"})
"""They make a matrix that is zeros but for its diagonal."""
_BY_FUNCTION = frozenset({"numpy.apply_along_axis", "numpy.apply_over_axes"})
_OF_NUMBERS = re.compile(r"(int|float|bool|str|abs|round|math\.\w+)$")
"""Functions of Python that get single numbers."""
_SEQUENCES = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Slice)


def is_lookup(path: Sequence[str]) -> bool:
    """True for a native path that finds, checks and converts one element, or computes with it, and not with many."""
    if not path or is_kernel(path[0]):
        return False
    return is_of_number(path) or (any(map(INDEXING.search, path)) and not any(map(OF_MANY.search, path)))


def iterated_arrays(names: Names, expressions: Sequence[ast.expr]) -> Iterator[Candidate]:
    """Built-in functions that take the elements of an array one by one."""
    for node in expressions:
        function = names.called(node)
        # A generator makes what it gives: no array is gone through.
        made = bool(isinstance(node, ast.Call) and node.args and isinstance(node.args[0], _MADE))
        if isinstance(node, ast.Call) and function in _BY_ELEMENT and node.args and not made:
            taken = short(node.args[0], 24)
            instead = f"np.{_OF_ARRAYS[function]}({taken})" if function in _OF_ARRAYS else f"{taken}.tolist()"
            if function == "collections.Counter":
                instead = f"np.unique({taken}, return_counts=True)"
            reason = f"{short(node)} takes the elements of {taken} one by one, and each becomes an object of its own."
            remedy = f"Take the array's own function, which makes no objects: {instead}."
            yield Candidate(MISUSE, reason, ITERATED, remedy)


def indexed_in(names: Names, node: ast.expr, loops: list[LoopNode], line: int) -> Iterator[Candidate]:
    """An element that a loop looks up by its own names.

    A mask takes many. Where there is one on the line, what indexing loads again is that of the mask, and of no element.
    """
    targets = {name for loop in loops for name in targets_of(loop)}
    if not isinstance(node, ast.Subscript) or not uses(node.slice, targets):
        return
    expressions = expressions_of(names, line)
    if any(isinstance(each, ast.Subscript) and _takes_many(names, each) for each in expressions):
        return
    if _is_sparse(names, node.value):
        reason = (
            f"{short(node)} takes or sets one element of a sparse matrix: each is searched for, a new one moves all."
        )
        yield Candidate(MISUSE, reason, ANY, COLLECT, lookup=True, by_source=True)
        return
    if _adds_at(names, node, loops):
        reason = f"{short(node)} is added to at one place after another: each time it is looked up, and stored again."
        yield Candidate(MISUSE, reason, FOR_BOTH, ADD_UP, spends=is_lookup)
        return
    reason = f"{short(node)} is looked up each time round the loop, with all checks of the array."
    yield from _looked_up(node, expressions, reason)


def indexed_by_callers(names: Names, node: ast.expr, evidence: Evidence) -> Iterator[Candidate]:
    """An element that a function looks up by what a loop of its callers counts with: ``at(i, j)``."""
    scope = names.module.scope(node)
    if not isinstance(node, ast.Subscript) or not isinstance(scope, ast.FunctionDef):
        return
    expressions = expressions_of(names, evidence.line)
    used = names_in(node.slice) & parameters_of(scope)
    call = _counting_caller(scope, used, evidence)
    if call is not None and not any(
        isinstance(each, ast.Subscript) and _takes_many(names, each) for each in expressions
    ):
        reason = f"{short(node)} is looked up each time that a loop runs {short(call)}, with all checks of the array."
        yield from _looked_up(node, expressions, reason)


def _counting_caller(scope: ast.FunctionDef, used: set[str], evidence: Evidence) -> ast.expr | None:
    """The call of a function in a loop that counts, and passes what it counts with for parameters; None without one."""
    for caller, line in evidence.callers:
        call = call_of(caller, scope, line)
        given = [each for name, each in (call.given or {}).items() if name in used] if call is not None else []
        if call is None or not given:
            return None
        loops = caller.module.loops(call.node)
        if loops:
            counters = counters_of(caller, loops)
            return call.node if any(uses(each, counters) for each in given) else None
        around = caller.module.scope(call.node)
        if not isinstance(around, ast.FunctionDef):
            return None
        scope, used = around, set().union(*map(names_in, given))
    return None


def _looked_up(node: ast.Subscript, expressions: Sequence[ast.expr], reason: str) -> Iterator[Candidate]:
    stored = not isinstance(node.ctx, ast.Load)
    of_frame = isinstance(node.value, ast.Attribute) and node.value.attr in _PLACES
    if of_frame and not isinstance(node.slice, ast.Slice):  # of rows in a row it is one lookup for many
        yield Candidate(SLICE, reason, INDEXING, lookup=True, by_source=True)
    # Of several elements on a line the one that is named is stored into if the pairs are of storing, or else read.
    yield Candidate(SLICE, reason, STORING_INDEX if stored else INDEXING, spends=is_lookup)
    if stored:
        yield Candidate(SLICE, reason, INDEXING, weight=LEAST_PART, spends=is_lookup)
    if not of_frame and not stored and _is_alone(expressions):
        yield Candidate(SLICE, reason, INDEXING, lookup=True, spends=is_lookup)


def _adds_at(names: Names, node: ast.Subscript, loops: list[LoopNode]) -> bool:
    """True for ``table[code] += 1`` where the loop takes the codes themselves, and does not count: no slice is that."""
    statement = names.module.parent.get(node)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    targets = {name for loop in loops if not isinstance(loop, ast.While) for name in targets_of(loop)}
    taken = targets - counters_of(names, loops)
    of_codes = all(isinstance(each, ast.Name) and each.id in taken for each in parts)
    return isinstance(statement, ast.AugAssign) and statement.target is node and of_codes


def _is_sparse(names: Names, node: ast.expr) -> bool:
    """True for a name that stands for a sparse matrix of SciPy alone, but one that is made for elements."""
    values = names.values(node) if isinstance(node, ast.Name | ast.Attribute) else [node]
    return bool(values) and all(each is not None and _SPARSE.match(names.called(each) or "") for each in values)


def rows_of_frames(names: Names, evidence: Evidence) -> Iterator[Candidate]:
    """Rows of a table that are made objects of their own: frame.apply(f, axis=1), frame.iterrows()."""
    for of_file, line in ((names, evidence.line), *evidence.callers[:1]):
        for node in expressions_of(of_file, line):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr == "iterrows" or (node.func.attr == "apply" and any(map(_is_of_rows, node.keywords))):
                reason = f"{short(node)} makes each row an object of its own, and looks up its elements by name."
                yield Candidate(MISUSE, reason, ANY, COLUMNS, lookup=True, by_source=True)


def one_of_many(names: Names, call: ast.Call, loops: list[LoopNode]) -> Iterator[Candidate]:
    """Functions of a library that get one element or pair each time round a loop, where one call is for all of them."""
    function = names.called(call) or ""
    module, _, name = function.rpartition(".")
    targets = {name for loop in loops for name in targets_of(loop)}
    if module == "scipy.spatial.distance" and name not in _OF_ALL_PAIRS and uses(call, targets):
        reason = f"{short(call)} is one distance each time round the loop: the call is dearer than its work."
        remedy = "Compute all distances with one call (scipy.spatial.distance.cdist)."
        yield Candidate(MISUSE, reason, ANY, remedy, lookup=True)
    if name in _OF_PAIRS or (isinstance(call.func, ast.Attribute) and call.func.attr in _OF_PAIRS):
        yield from _one_pair(names, call, loops)
    taken = {id(loop): loop for loop in loops if isinstance(loop, ast.For | ast.comprehension)}.values()
    elements = {loop.target.id for loop in taken if isinstance(loop.target, ast.Name) and not _is_made(loop.iter)}
    first = call.args[0] if call.args else None
    if module == "pandas" and name in _CONVERTING and isinstance(first, ast.Name) and first.id in elements:
        reason = f"{short(call)} converts one element each time round the loop: the call is dearer than its work."
        remedy = f"Convert all with one call: pd.{name} takes a list, an array or a column."
        yield Candidate(MISUSE, reason, ANY, remedy, lookup=True, by_source=True)


def batches_of_one(names: Names, call: ast.Call, evidence: Evidence) -> Iterator[Candidate]:
    """Methods of models that get one row each time, as a batch, in a loop over rows or in a function that one calls."""
    if not _gets_one_row(names, call, MAX_STEPS):
        return
    if _is_for_each(names, call) or any(
        _is_for_each(of_file, node)
        for of_file, line in evidence.callers
        for node in expressions_of(of_file, line)
        if isinstance(node, ast.Call)
    ):
        reason = f"{short(call)} gets one row each time round a loop: the call is dearer than its work."
        remedy = "Collect the rows, and make one call for all of them."
        yield Candidate(MISUSE, reason, ANY, remedy, lookup=True, by_source=True)


def _is_for_each(names: Names, call: ast.Call) -> bool:
    """True if a loop goes over rows that are there already, and the call gets one: others may come one by one."""
    targets = {
        name for loop in names.module.loops(call) if not isinstance(loop, ast.While) for name in targets_of(loop)
    }
    parts: list[ast.expr | None] = [*call.args]
    parts += [value for each in call.args if isinstance(each, ast.Name) for value in names.binding(each.id, each)]
    return any(part is not None and uses(part, targets) for part in parts)


def _gets_one_row(names: Names, call: ast.expr, depth: int) -> bool:
    """True for a model's method with a batch of one row, or with what another one made of such."""
    is_method = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and names.called(call) is None
    if not (is_method and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
        return False
    return call.func.attr in _OF_BATCHES and _is_one_row(names, call.args[0], depth)


def _is_one_row(names: Names, node: ast.expr, depth: int) -> bool:
    """True for a batch of one: ``[row]``, ``row.reshape(1, -1)``, ``row[None]``, or a name for one."""
    if depth == 0:
        return False
    if isinstance(node, ast.List):
        return len(node.elts) == 1 and not isinstance(node.elts[0], ast.Starred)
    if isinstance(node, ast.Subscript):
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        return (isinstance(first, ast.Constant) and first.value is None) or (dotted(first) or "").endswith("newaxis")
    if isinstance(node, ast.Call):
        if names.called(node) in ("numpy.array", "numpy.asarray", "pandas.DataFrame") and node.args:
            return isinstance(node.args[0], ast.List) and _is_one_row(names, node.args[0], depth)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
            return [ast.unparse(each) for each in node.args] in (["1", "-1"], ["(1, -1)"])
        return _gets_one_row(names, node, depth - 1)
    values = names.binding(node.id, node) if isinstance(node, ast.Name) else []
    return len(values) == 1 and values[0] is not None and _is_one_row(names, values[0], depth - 1)


def _one_pair(names: Names, call: ast.Call, loops: list[LoopNode]) -> Iterator[Candidate]:
    """One pair of columns of one table after another, by two loops: ``frame[a].corr(frame[b])``."""
    receiver = [call.func.value] if isinstance(call.func, ast.Attribute) and names.called(call) is None else []
    two = [*receiver, *call.args][:2]
    columns = [each for each in two if isinstance(each, ast.Subscript)]
    names_of = {loop: targets_of(loop) for loop in loops}
    of_pairs = {loop for loop in loops if (names.called(getattr(loop, "iter", loop)) or "").startswith("itertools.")}
    taken_by = [next((loop for loop in loops if uses(each.slice, names_of[loop])), None) for each in columns]
    both = len(columns) == 2 and None not in taken_by and spelled(columns[0].value) == spelled(columns[1].value)
    if both and (taken_by[0] is not taken_by[1] or taken_by[0] in of_pairs):
        table = short(columns[0].value, 24)
        reason = (
            f"{short(call)} is for one pair of columns: what it needs of each is computed again for each other one."
        )
        remedy = f"Compute all pairs with one call: {table}.corr() or cov() of a DataFrame, np.corrcoef or np.cov."
        yield Candidate(MISUSE, reason, ANY, remedy, lookup=True, by_source=True)


def converted_elements(names: Names, call: ast.Call, loops: list[LoopNode], evidence: Evidence) -> Iterator[Candidate]:
    """Elements of an array that a loop takes one by one to make numbers of Python's own of them: ``int(x)``.

    That it is an array is known by the native functions.
    """
    loop = loops[0]
    if isinstance(loop, ast.While) or names.called(call) not in ("int", "float", "bool") or len(call.args) != 1:
        return
    target, element = loop.target, call.args[0]
    of_arrays = any(map(TAKING_ELEMENT.search, (name for path in evidence.paths for name in path)))
    if isinstance(target, ast.Name) and isinstance(element, ast.Name) and element.id == target.id and of_arrays:
        array = short(loop.iter, 24)
        reason = f"{short(call)} gets one element of {array} each time, and each becomes an object of its own first."
        remedy = f"Convert all with one call: {array}.astype({names.called(call)}).tolist()."
        yield Candidate(MISUSE, reason, ANY, remedy, lookup=True, by_source=True)


def _is_made(node: ast.expr) -> bool:
    """True for a list of what may be arrays: written out."""
    return isinstance(node, ast.List | ast.Tuple | ast.Dict)


def by_python_function(names: Names, node: ast.expr) -> Iterator[Candidate]:
    """Functions of NumPy that call a function of Python's for each element or row, such as ``np.vectorize(f)(x)``."""
    if not isinstance(node, ast.Call):
        return
    made = names.called(node)
    values: list[ast.expr | None] = [node.func]
    if isinstance(node.func, ast.Name | ast.Attribute):
        values = names.values(node.func)
    of_made = len(values) == 1 and values[0] is not None and names.called(values[0]) in _WRAPPING
    if made in _BY_FUNCTION or of_made or _applies_to_numbers(names, node):
        reason = f"{short(node)} calls a function of Python's for each element: that takes longer than the arithmetic."
        yield Candidate(MISUSE, reason, ANY, BY_ARRAYS, lookup=True, within=True)


def products_with_diagonals(names: Names, node: ast.expr) -> Iterator[Candidate]:
    """Products with a matrix that is made of its diagonal: all the rest of it is zeros."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and names.called(node) in ("numpy.dot", "numpy.matmul"):
        sides = node.args[:2]
    for side in sides:
        values = names.values(side) if isinstance(side, ast.Name | ast.Attribute) else [side]
        made = values[0] if len(values) == 1 else None
        if isinstance(made, ast.Call) and names.called(made) in _OF_DIAGONALS:
            reason = f"{short(node)} goes through all of {short(made, 24)}, and all but its diagonal is zeros."
            remedy = (
                "Multiply rows or columns by the diagonal itself: A * d for A @ np.diag(d), d[:, None] * A before A."
            )
            # Time shows it rather than pairs: another reason for these comes first.
            yield Candidate(MISUSE, reason, ANY, remedy, weight=LEAST_PART, within=True, spends=is_matrix_product)


def is_matrix_product(path: Sequence[str]) -> bool:
    """True for a native path of a product of two matrices."""
    return any(map(MATRIX_PRODUCTS.search, path))


def _applies_to_numbers(names: Names, call: ast.Call) -> bool:
    """True for ``column.apply(lambda x: x * 2)``: what is done with the argument shows that it is a number."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("apply", "map") or len(call.args) != 1:
        return False
    function = call.args[0]
    if not isinstance(function, ast.Lambda) or call.keywords or not names.imports("pandas"):
        return False
    own = {each.arg for each in function.args.args}
    for part in ast.walk(function.body):
        if isinstance(part, ast.Attribute | ast.Subscript) and uses(part.value, own):
            return False
        if isinstance(part, ast.Call) and not _OF_NUMBERS.match(names.called(part) or ""):
            return False
    return uses(function.body, own)


def _is_of_rows(keyword: ast.keyword) -> bool:
    return keyword.arg == "axis" and isinstance(keyword.value, ast.Constant) and keyword.value.value in (1, "columns")


def _takes_many(names: Names, node: ast.Subscript) -> bool:
    """True if an index is a comparison of arrays, or a name that stands for one."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    values = [value for part in parts if isinstance(part, ast.Name) for value in names.binding(part.id, part)]
    return any(isinstance(each, ast.Compare) for part in [*parts, *values] if part for each in ast.walk(part))


def _is_alone(expressions: Sequence[ast.expr]) -> bool:
    """True for a line that looks up elements, and may add them to something, and does no other work."""
    return not any(isinstance(node, ast.Call | ast.BinOp | ast.Compare) for node in expressions)


def is_one_draw(names: Names, runs: Runs, call: ast.Call, loop: LoopNode, evidence: Evidence) -> bool:
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


def one_by_one(names: Names, line: int) -> Iterator[Candidate]:
    """Rows or elements of an array that a loop takes one by one, to compute with each."""
    for statement in names.module.statements.get(line, ()):
        if isinstance(statement, ast.For):
            for target, array in _taken(names, statement).items():
                reason = f"{target} is one row or element of {array} each time round the loop."
                yield Candidate(SLICE, reason, ITERATING)
        for loop in names.module.loops(statement):
            taken = _taken(names, loop) if isinstance(loop, ast.For | ast.comprehension) else {}
            for target in sorted(_computed_with(names, statement) & taken.keys()):
                reason = f"{target} is one row or element of {taken[target]}: each gets a call of its own."
                yield Candidate(SLICE, reason, EACH_ROW)


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


def counters_of(names: Names, loops: list[LoopNode]) -> set[str]:
    """The names that loops count with: those of ``range``, of ``enumerate``'s first, and of while loops."""
    counters = set[str]()
    for loop in loops:
        if isinstance(loop, ast.While):
            counters |= targets_of(loop)
            continue
        function, target = names.called(loop.iter), loop.target
        if function == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[0]
        if function in ("range", "enumerate") and isinstance(target, ast.Name):
            counters.add(target.id)
    return counters


def of_one_number(names: Names, function: str, call: ast.Call, targets: set[str], counters: set[str]) -> bool:
    """True if a function for arrays gets elements or the loop's counter, and no array or sequence beside them.

    What else a loop takes one by one may be arrays.
    """
    package, _, name = function.partition(".")
    if package != "numpy" or name not in _ELEMENTWISE:
        return False
    parts = [part for argument in call.args for part in ast.walk(argument)]
    subscripts = [part for part in parts if isinstance(part, ast.Subscript)]
    if any(_takes_many(names, each) for each in subscripts):
        return False
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
