"""Rules about Python functions called for each value, row, group or window of a table, and rows added one by one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import Names
from ....source_code.source import Function
from ..program import MOSTLY, Finding, Program, Rule, time_figure

EACH_SHARE = 0.10
"""The part of the CPU time, at the low end of its interval, in the library's loop with all that it calls."""

_FUNCTIONS = {
    "numpy.vectorize": "np.vectorize is a loop in Python: it calls the function for each value.",
    "numpy.frompyfunc": "What np.frompyfunc makes calls the function for each value, in Python.",
    "numpy.apply_along_axis": "np.apply_along_axis calls the function for each row, in Python.",
}
_NUMPY_LOOPS = frozenset({"vectorize.__call__", "vectorize._vectorize_call", "apply_along_axis"})

_WHOLE = (
    "write the function with whole arrays: arithmetic and np functions (with axis= for rows), np.where() or"
    " np.select() in place of if"
)


def function_for_each_value(program: Program) -> Iterator[Finding]:
    """``np.vectorize(function)`` and ``np.apply_along_axis(function, ...)`` of a function of the user's own."""
    spent, _, _, lines = program.facts.cpu_inside(lambda name, path: name in _NUMPY_LOOPS and "/numpy/" in path)
    for (file, line), each in sorted(lines.items(), key=lambda item: -item[1]):
        share, low = program.facts.low(each)
        names = program.names(file) if low >= EACH_SHARE and each <= spent else None
        called = None if names is None else _maker(names, line)
        if called is None:
            continue
        yield Finding(
            share,
            time_figure(share, each),
            _FUNCTIONS[called],
            _WHOLE,
            file,
            line,
            program.facts.function(file, line),
        )


def _maker(names: Names, line: int) -> str | None:
    """The function of numpy on a line that calls a function of this file for each value; or that made what is called.

    None where the function does more than calculate: it may have no form for whole arrays.
    """
    for node in names.module.expressions(line):
        made: ast.expr | None = node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            bound = names.binding(node.func.id, node.func)
            made = bound[0] if len(bound) == 1 and bound[0] is not None else node
        called = names.called(made) if made is not None else None
        if called in _FUNCTIONS and isinstance(made, ast.Call) and made.args and _calculates(made.args[0], names):
            return called
    return _decorated(names, line)


def _decorated(names: Names, line: int) -> str | None:
    """The same of a call of a function that ``@np.vectorize`` decorates."""
    for node in names.module.expressions(line):
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        for function in names.functions.get(name, ()):
            for each in function.decorator_list:
                if names.decorator(each) in _FUNCTIONS and _body_calculates(function):
                    return names.decorator(each)
    return None


def _calculates(given: ast.expr, names: Names) -> bool:
    function = _function(given, names)
    return function is not None and _body_calculates(function)


def _function(given: ast.expr, names: Names) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    """The function that a call is given: a lambda, or the only one of its name in the file."""
    if isinstance(given, ast.Lambda):
        return given
    functions = names.functions.get(given.id, []) if isinstance(given, ast.Name) else []
    return functions[0] if len(functions) == 1 else None


_CALCULATING = frozenset(
    {
        *("abs", "min", "max", "round", "float", "int", "bool", "pow", "sqrt", "exp", "log", "log2", "log10", "log1p"),
        *("sin", "cos", "tan", "tanh", "atan2", "arctan2", "hypot", "floor", "ceil", "sum", "mean", "std", "var"),
        *("median", "argmax", "argmin", "dot", "norm", "isnan", "where", "clip", "sign", "maximum", "minimum"),
    }
)


def _body_calculates(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """True of a function without loops and other calls: arithmetic, comparisons, and functions that arrays have."""
    body: list[ast.stmt] | list[ast.expr] = [function.body] if isinstance(function, ast.Lambda) else function.body
    for part in body:
        for node in ast.walk(part):
            if isinstance(node, ast.For | ast.While | ast.Try | ast.With | ast.Raise | ast.comprehension | Function):
                return False
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_text(part):
                return False
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name not in _CALCULATING:
                    return False
    return True


def _is_text(part: ast.AST) -> bool:
    """True of a docstring."""
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)


# Groups.

_GROUP_METHODS = ("apply", "transform", "agg", "aggregate", "filter")
_NAMED = frozenset(
    {
        *("sum", "mean", "min", "max", "count", "size", "std", "var", "median", "first", "last", "nunique", "prod"),
        *("cumsum", "cumprod", "cummax", "cummin", "rank", "diff", "shift", "any", "all", "head", "tail", "fillna"),
        *("ffill", "bfill", "pct_change", "idxmax", "idxmin", "quantile", "len", "abs", "round"),
    }
)
"""Methods of groups, in native code, and of columns for all rows."""


def function_of_each_group(program: Program) -> Iterator[Finding]:
    """``table.groupby(key).transform(lambda group: ...)`` of what pandas has for all groups at once."""
    _, _, _, lines = program.facts.cpu_inside(
        lambda name, path: name.rpartition(".")[2] in _GROUP_METHODS and "/pandas/core/groupby/" in path
    )
    for (file, line), spent in sorted(lines.items(), key=lambda item: -item[1]):
        share, low = program.facts.low(spent)
        names = program.names(file) if low >= EACH_SHARE else None
        if names is None or not names.imports("pandas"):
            continue
        for node in names.module.expressions(line):
            used = _of_group(node, names)
            if used is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            first = f'"{used}"' if used else '"mean"'
            yield Finding(
                share,
                time_figure(share, spent),
                "pandas calls a Python function for each group, with a table or column made for it.",
                f"names of methods, groups.{_by_name(node.func.attr)}({first}), which calculate all groups in native"
                " code, and arithmetic with whole columns around them",
                file,
                line,
                program.facts.function(file, line),
            )
            break


# Windows.

_WINDOWS = ("/pandas/core/window/rolling.py", "/pandas/core/window/expanding.py")
_OF_WINDOWS = frozenset(
    {"sum", "mean", "min", "max", "count", "std", "var", "median", "skew", "kurt", "sem", "quantile"}
)
"""Methods of windows."""
_OF_COLUMNS = frozenset({"std", "var", "median", "norm"})
"""Functions that columns and arrays have in different forms, or one of them not at all."""


def function_of_each_window(program: Program) -> Iterator[Finding]:
    """``column.rolling(48).apply(lambda window: ...)`` of what pandas has for all windows at once."""
    _, _, _, lines = program.facts.cpu_inside(
        lambda name, path: name.rpartition(".")[2] == "apply" and path.endswith(_WINDOWS)
    )
    for (file, line), spent in sorted(lines.items(), key=lambda item: -item[1]):
        share, low = program.facts.low(spent)
        names = program.names(file) if low >= EACH_SHARE else None
        instead = None if names is None else _for_windows(names, line)
        if instead is not None:
            yield Finding(
                share,
                time_figure(share, spent),
                "pandas calls a Python function for each window, with a column made for it.",
                instead,
                file,
                line,
                program.facts.function(file, line),
            )


def _for_windows(names: Names, line: int) -> str | None:
    """The form to write instead of the call on a line; None if its function may need what only the call gives."""
    for node in names.module.expressions(line):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "apply" or len(node.args) != 1:
            continue
        if any(each.arg != "raw" for each in node.keywords):
            continue
        used = _of_group(node, names, _OF_WINDOWS)
        if used is not None:
            first = f"windows.{used}()" if used else "windows.mean()"
            return f"the methods of windows, {first}, which run in native code, and arithmetic with their results"
        if not node.keywords and _calculates(node.args[0], names) and not _of_columns(node.args[0], names):
            return "apply(..., raw=True), which passes the values as an array and makes no column of each window"
    return None


def _of_columns(given: ast.expr, names: Names) -> bool:
    """True if an array may give another result than a column, which has other functions and skips missing values."""
    function = _function(given, names)
    calls = [] if function is None else [each for each in ast.walk(function) if isinstance(each, ast.Call)]
    named = {each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "") for each in calls}
    missing = any(isinstance(each, ast.keyword) and each.arg == "min_periods" for each in names.module.parent)
    return missing or bool(named & _OF_COLUMNS)


def _by_name(method: str) -> str:
    return "transform" if method == "transform" else "agg"


def _of_group(node: ast.expr, names: Names, named: frozenset[str] = _NAMED) -> str | None:
    """A method of groups that a function of each group uses, which does nothing but calculate with such ones.

    None if a node is no call with such a function, or its function does anything else.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
        return None
    if node.func.attr not in ("apply", "transform", "agg", "aggregate"):
        return None
    function = _function(node.args[0], names)
    if function is None or len(function.args.args) != 1:
        return None
    body = function.body if isinstance(function, ast.Lambda) else _returned(function)
    if body is None:
        return None
    method = None
    for each in ast.walk(body):
        if isinstance(each, ast.Call):
            name = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
            # numpy's own divide by another number of values.
            if name not in named or names.called(each) in ("numpy.std", "numpy.var"):
                return None
            method = method or ("size" if name == "len" else name)
        elif isinstance(each, ast.Lambda | ast.comprehension | ast.IfExp | ast.Dict | ast.List | ast.JoinedStr):
            return None
    return method


def _returned(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.expr | None:
    """The expression of a function that is one ``return``, behind its docstring."""
    body = [each for each in function.body if not _is_text(each)]
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


# Rows.

_ENLARGING = frozenset({"_setitem_with_indexer_missing"})


def row_by_row(program: Program) -> Iterator[Finding]:
    """``table.loc[len(table)] = row`` in a loop: pandas makes the whole table anew for each row."""

    def enlarges(name: str, path: str) -> bool:
        return name.rpartition(".")[2] in _ENLARGING and path.endswith("/pandas/core/indexing.py")

    _, _, _, lines = program.facts.cpu_inside(enlarges)
    for (file, line), spent in sorted(lines.items(), key=lambda item: -item[1]):
        share, low = program.facts.low(spent)
        names = program.names(file) if low >= EACH_SHARE else None
        if names is None or spent < MOSTLY * program.facts.cpu_at(file, line):
            continue
        if any(_is_added(node) and names.module.loops(node) for node in names.module.expressions(line)):
            yield Finding(
                share,
                time_figure(share, spent),
                "A row that the table does not have is assigned: pandas makes the whole table anew, each time.",
                "append the rows to a list, and make the table of it once, after the loop: pd.DataFrame(rows)",
                file,
                line,
                program.facts.function(file, line),
            )


def _is_added(node: ast.AST) -> bool:
    """True of ``table.loc[...]`` or ``table.at[...]`` that is assigned."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr in ("loc", "at")
    )


# Sparse matrices.


def sparse_by_element(program: Program) -> Iterator[Finding]:
    """``matrix[row, column] = value`` in a loop: scipy makes the arrays of a compressed matrix anew for each."""
    for spot in program.spots:
        if spot.line.low < EACH_SHARE or not spot.names.imports("scipy"):
            continue
        stored = [each for each in spot.expressions() if isinstance(each, ast.Subscript)]
        stored = [each for each in stored if isinstance(each.ctx, ast.Store) and spot.module.loops(each)]
        inserting = spot.below.python_s("/scipy/sparse/_compressed.py", "_insert_many", "_set_many", "_set_intXint")
        if stored and inserting >= MOSTLY * spot.line.cpu_s:
            yield spot.finding(
                "A value that a compressed sparse matrix does not have is stored: its arrays are made anew, each time.",
                "lists of rows, columns and values, and scipy.sparse.coo_array((values, (rows, columns))).tocsr() once"
                " after the loop, which adds up values of one place; or a lil_array or dok_array in the loop",
            )


RULES = (
    Rule(
        "sparse-by-element",
        "CPU time by line, with what scipy's functions that insert values had below it",
        "10 % of the CPU time, half of the line's in inserting, in a loop",
        sparse_by_element,
    ),
    Rule(
        "function-for-each-value",
        "CPU time below numpy's functions that call others, and the function in the source",
        "10 % of the CPU time; the function only calculates, with what numpy has for whole arrays",
        function_for_each_value,
    ),
    Rule(
        "function-of-each-group",
        "CPU time below apply, transform and agg of pandas' groups, and the function in the source",
        "10 % of the CPU time; the function is arithmetic and methods that groups have",
        function_of_each_group,
    ),
    Rule(
        "function-of-each-window",
        "CPU time below apply of pandas' windows, and the function in the source",
        "10 % of the CPU time; the function is arithmetic and methods that windows or arrays have",
        function_of_each_window,
    ),
    Rule(
        "row-by-row",
        "CPU time by line in pandas' function that adds a row to a table",
        "10 % of the CPU time, half of the line's, in a loop",
        row_by_row,
    ),
)
