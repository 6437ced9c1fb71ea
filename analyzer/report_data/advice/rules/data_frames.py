"""Rules about pandas: rows that are made one by one, and columns that are looked up again and again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.source import LoopNode, dotted, names_in, short
from ..program import MOSTLY, Finding, Program, Rule, Spot
from .faster_forms import varies

BEGINNING = 0.10
"""The part of the time of iterrows() that may go into the values of the table as a whole, once for each loop."""

MASK_SHARE = 0.10
"""The part of the CPU time, at the low end of its interval, of a line that compares whole columns in a loop."""

_PANDAS = ("pandas", "numpy")


def _in_pandas(spot: Spot) -> bool:
    """True if most of a line's time is spent in pandas."""
    packages = spot.below.packages
    return spot.part(sum(packages.get(name, 0.0) for name in _PANDAS)) >= MOSTLY


def apply_rows(program: Program) -> Iterator[Finding]:
    """``frame.apply(function, axis=1)``, whose time goes into making rows."""
    for spot in program.spots:
        if not spot.busy or not spot.names.imports("pandas"):
            continue
        for node in spot.expressions():
            if isinstance(node, ast.Call) and _is_apply(node) and spot.below.python_s("/pandas/core/apply.py"):
                if not _in_pandas(spot):
                    continue
                yield spot.finding(
                    "apply(axis=1) makes a Series for each row and calls a Python function with it.",
                    "write the calculation with whole columns, or go through zip() of the columns that it needs",
                )
                break


def _is_apply(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "apply":
        return False
    axis = next((keyword.value for keyword in call.keywords if keyword.arg == "axis"), None)
    return isinstance(axis, ast.Constant) and axis.value in (1, "columns")


def apply_elements(program: Program) -> Iterator[Finding]:
    """``column.apply(function)`` of a function that pandas has for whole columns."""
    for spot in program.spots:
        if not spot.busy or not spot.names.imports("pandas"):
            continue
        for node in spot.expressions():
            instead = _for_columns(node, spot)
            if instead is None or not _elementwise(spot):
                continue
            yield spot.finding("A Python function is called for each value of the column.", instead)
            break


def _elementwise(spot: Spot) -> bool:
    """True if most of a line's time is below a Series' own apply or map: not below that of a frame or of groups."""
    in_series = max(
        spot.below.python_s("/pandas/core/series.py", "apply", "map"), spot.below.python_s("/pandas/core/apply.py")
    )
    others = spot.below.python_s("/pandas/core/groupby/"), spot.below.python_s("/pandas/core/frame.py", "apply")
    return in_series >= MOSTLY * spot.line.cpu_s and max(others) == 0


def _for_columns(node: ast.expr, spot: Spot) -> str | None:
    """The form for a whole column of ``column.apply(function)``; None if there is none that is certain."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return None
    if node.func.attr not in ("apply", "map") or len(node.args) != 1:
        return None
    column, function = short(node.func.value, 30), node.args[0]
    named = spot.names.called(ast.copy_location(ast.Call(function, [], []), node)) if dotted(function) else None
    if named is not None:
        return _WHOLE[named].format(column) if named in _WHOLE else None
    if not isinstance(function, ast.Lambda) or len(function.args.args) != 1 or function.args.defaults:
        return None
    value, body = function.args.args[0].arg, function.body
    if isinstance(body, ast.BinOp) and _arithmetic(body, value):
        return f"the same expression with {column} in place of “{value}”, for the whole column at once"
    if (
        isinstance(body, ast.Call)
        and isinstance(body.func, ast.Attribute)
        and isinstance(body.func.value, ast.Name)
        and body.func.value.id == value
        and body.func.attr in _TEXT_METHODS
        and not body.keywords
        and all(isinstance(each, ast.Constant) for each in body.args)
    ):
        return f"{column}.str.{body.func.attr}(), for the whole column at once"
    return None


_WHOLE = {
    "pandas.to_datetime": "pd.to_datetime({}), of the whole column at once",
    "pandas.to_numeric": "pd.to_numeric({}), of the whole column at once",
    "pandas.to_timedelta": "pd.to_timedelta({}), of the whole column at once",
    "pandas.isna": "{}.isna(), of the whole column at once",
    "str": "{}.astype(str), of the whole column at once",
    "float": "{}.astype(float), of the whole column at once",
    "abs": "{}.abs(), of the whole column at once",
    "numpy.sqrt": "np.sqrt({}), of the whole column at once",
    "numpy.log": "np.log({}), of the whole column at once",
    "numpy.exp": "np.exp({}), of the whole column at once",
}
"""Functions of one value, with the form for a column."""

_TEXT_METHODS = frozenset({"lower", "upper", "strip", "title", "startswith", "endswith", "removeprefix"})


def _arithmetic(node: ast.expr, value: str) -> bool:
    """True of + - * / and the like between the value, numbers, and names."""
    if isinstance(node, ast.BinOp):
        simple = isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow)
        return simple and _arithmetic(node.left, value) and _arithmetic(node.right, value)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _arithmetic(node.operand, value)
    return (isinstance(node, ast.Constant) and isinstance(node.value, int | float)) or (
        isinstance(node, ast.Name) and node.id == value
    )


def object_column(program: Program) -> Iterator[Finding]:
    """Comparisons of a column of Python objects, one value after the other."""
    for spot in program.spots:
        if not spot.busy or not spot.names.imports("pandas"):
            continue
        compares = any(
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.Eq | ast.NotEq)
            and isinstance(node.comparators[0], ast.Constant)
            and isinstance(node.comparators[0].value, str)
            for node in spot.expressions()
        )
        compared = spot.below.python_s("/pandas/core/ops/array_ops.py", "comp_method_OBJECT_ARRAY")
        if compares and compared >= MOSTLY * spot.line.cpu_s:
            yield spot.finding(
                "The column has dtype object: each text is a Python object, and they are compared one by one.",
                "column.astype('category') where values repeat, else column.astype('string[pyarrow]'), once, when the"
                " table is made",
            )


def iterrows(program: Program) -> Iterator[Finding]:
    """Loops over ``frame.iterrows()``."""
    for spot in program.spots:
        if not spot.busy or not spot.names.imports("pandas"):
            continue
        called = any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "iterrows"
            for node in spot.expressions()
        )
        if called and _many_rows(spot) and spot.below.python_s("/pandas/core/", "iterrows") >= MOSTLY * spot.line.cpu_s:
            yield spot.finding(
                "iterrows() makes a Series for each row.",
                "write the calculation with whole columns, or go through itertuples(), which makes plain tuples",
            )


def _many_rows(spot: Spot) -> bool:
    """True if rows have the time, not the beginning of each loop: of a few rows no form is much faster."""
    return spot.below.python_s("/pandas/core/frame.py", "values") <= BEGINNING * spot.line.cpu_s


def cell_by_cell(program: Program) -> Iterator[Finding]:
    """``table.loc[row, "price"]`` in a loop over the rows."""
    for spot in program.spots:
        if not spot.busy or not spot.names.imports("pandas"):
            continue
        looked_up = spot.below.python_s("/pandas/core/indexing.py", "__getitem__", "__setitem__")
        if looked_up >= MOSTLY * spot.line.cpu_s and any(_one_row(node, spot) for node in spot.expressions()):
            yield spot.finding(
                "Each round looks up one row or cell of the table, and pandas does that in Python.",
                "write the calculation with whole columns, or go through zip() of the columns that it needs; where a"
                " row depends on the one before, take column.to_numpy() before the loop",
            )


def _one_row(node: ast.expr, spot: Spot) -> bool:
    """True of ``.loc[...]`` and the like by what a loop over numbers or over an index counts."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return False
    loop = spot.loop(node)
    if node.value.attr not in ("loc", "iloc", "at", "iat") or not isinstance(loop, ast.For | ast.comprehension):
        return False
    parts = list(ast.walk(node.slice))
    counted = names_in(loop.target)
    by_row = any(isinstance(each, ast.Name) and each.id in counted for each in parts)
    return by_row and not any(isinstance(each, ast.Slice) for each in parts) and _over_rows(loop.iter)


def _over_rows(node: ast.expr) -> bool:
    """True of ``range(...)`` and of the index of a table."""
    if isinstance(node, ast.Call):
        called = node.func
        return getattr(called, "id", "") == "range" or getattr(called, "attr", "") == "iterrows"
    return isinstance(node, ast.Attribute) and node.attr == "index"


def mask_for_each_value(program: Program) -> Iterator[Finding]:
    """``table[table.city == city]`` in a loop over cities: each round compares the whole column."""
    for spot in program.spots:
        if spot.line.low < MASK_SHARE or not any(_mask(node, spot) for node in spot.expressions()):
            continue
        if _in_pandas(spot) and spot.names.imports("pandas"):
            instead = "go through table.groupby(column), which divides the rows once"
        elif spot.below.library_s("/numpy/") >= MOSTLY * spot.line.cpu_s:
            instead = (
                "one pass for all values: scipy.ndimage.mean(image, labels, index) and the like, np.bincount(labels,"
                " weights), or one argsort() of the labels and np.split()"
            )
        else:
            continue
        yield spot.finding("Each round of the loop compares all elements, to find those of one value.", instead)


def _mask(node: ast.expr, spot: Spot) -> bool:
    """True of ``a[b == c]``, where a loop changes c, and neither a nor b."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Compare):
        return False
    compared, loop = node.slice, spot.loop(node)
    if loop is None or isinstance(loop, ast.While) or len(compared.ops) != 1 or not isinstance(compared.ops[0], ast.Eq):
        return False
    same, value = (node.value, compared.left), compared.comparators[0]
    return varies(value, loop, spot) and not any(varies(each, loop, spot) for each in same)


def chained_indexing(program: Program) -> Iterator[Finding]:
    """``table[a][b][i]`` in a loop, where ``table[a][b]`` is the same each time round."""
    for spot in program.spots:
        if not (spot.busy or spot.copies) or not spot.names.imports("pandas"):
            continue
        for node in spot.expressions():
            if not isinstance(node, ast.Subscript) or isinstance(spot.module.parent.get(node), ast.Subscript):
                continue
            loop = spot.loop(node)
            prefix = None if loop is None else _fixed_part(node, spot, loop)
            if prefix is None or not _looked_up(spot) >= MOSTLY * spot.line.cpu_s or not _in_pandas(spot):
                continue
            yield spot.finding(
                f"{short(prefix)} is the same each time round the loop, and pandas looks it up each time.",
                f"column = {short(prefix)} before the loop, and index that in it",
                spot.time_figure() if spot.busy else spot.copy_figure(),
            )
            break


def _looked_up(spot: Spot) -> float:
    return spot.below.python_s("/pandas/core/", "__getitem__")


def _fixed_part(node: ast.Subscript, spot: Spot, loop: LoopNode) -> ast.expr | None:
    """The longest part of a chain of subscripts, not all of it, that a loop does not change."""
    part = node.value
    if spot.names.fixed(node.slice, loop):
        return None
    while isinstance(part, ast.Subscript):
        if spot.names.fixed(part, loop):
            base: ast.expr = part
            while isinstance(base, ast.Subscript):
                base = base.value
            return part if dotted(base) is not None else None
        part = part.value
    return None


RULES = (
    Rule(
        "apply-rows",
        "CPU time by line, with what pandas' own functions below it had",
        "5 % of the CPU time, most of it in pandas: not in the function that is applied",
        apply_rows,
    ),
    Rule(
        "apply-elements",
        "CPU time by line, with what pandas' own functions below it had",
        "5 % of the CPU time, most of it below apply or map of a column; the function has a form for whole columns",
        apply_elements,
    ),
    Rule(
        "object-column",
        "CPU time by line, with what pandas' own functions below it had",
        "5 % of the CPU time, most of it in comparing the objects of a column with a text",
        object_column,
    ),
    Rule(
        "iterrows",
        "CPU time by line, with what pandas' own functions below it had",
        "5 % of the CPU time, most of it in iterrows, and there in making rows",
        iterrows,
    ),
    Rule(
        "cell-by-cell",
        "CPU time by line, with what pandas' own functions below it had",
        "5 % of the CPU time, most of it in looking up a row or cell by what a loop over the rows counts",
        cell_by_cell,
    ),
    Rule(
        "mask-for-each-value",
        "CPU time by line, with what numpy and pandas below it had",
        "10 % of the CPU time, most of it in them; a loop changes the value, not what is compared with it",
        mask_for_each_value,
    ),
    Rule(
        "chained-indexing",
        "CPU time by line, with what pandas' own functions below it had",
        "5 % of the CPU time, most of it in pandas' __getitem__",
        chained_indexing,
    ),
)
