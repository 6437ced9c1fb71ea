"""Rules about work on one thing at a time: growing by copies, calls for one item, arithmetic with one number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import Names
from ....source_code.source import dotted, short
from ...numbers import percent
from ..program import MOSTLY, Finding, Program, Spot, time_figure
from . import verbs
from .hot import TRIVIAL, Hot, hot_lines, outside_s, package_of
from .rounds import SAME, Round, Sameness, rounds

# Growing by copies.


def grown_by_copies(program: Program) -> Iterator[Finding]:
    """Statements of a loop that make an object anew of itself and of what is added."""
    for hot in hot_lines(program):
        spot = hot.spot
        for statement in spot.module.statements.get(spot.line.line, ()):
            target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
            name = None if target is None else dotted(target)
            if name is None or not isinstance(statement, ast.Assign) or not _made_of_itself(statement.value, name):
                continue
            around = next(rounds(hot.levels(statement)), None)
            if around is None or around.loop is None:
                continue
            if around.level == 0 and isinstance(target, ast.Name) and _begun_inside(around, name, statement):
                continue
            yield spot.finding(
                f"“{name}” is made anew of all that it was and of what is added, {around.each}.",
                f"collect the parts in a list (or change “{name}” in place), and join them once, after the loop",
            )
            break


def _made_of_itself(value: ast.expr, name: str) -> bool:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.BitOr):
        displays = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp)
        return dotted(value.left) == name and isinstance(value.right, displays)
    if isinstance(value, ast.Dict):
        return any(key is None and dotted(each) == name for key, each in zip(value.keys, value.values, strict=True))
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return any(isinstance(each, ast.Starred) and dotted(each.value) == name for each in value.elts)
    if not isinstance(value, ast.Call):
        return False
    if verbs.grows(verbs.last(value)):
        first = value.args[0] if value.args else None
        parts = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
        owner = value.func.value if isinstance(value.func, ast.Attribute) else None
        return any(each is not None and dotted(each) == name for each in (*parts, owner))
    # A call of what was made so: np.sort(np.append(values, one)), pd.concat([table, row]).sort_index()
    if any(isinstance(each, ast.Call) and _made_of_itself(each, name) for each in value.args[:1]):
        return True
    return isinstance(value.func, ast.Attribute) and _made_of_itself(value.func.value, name)


def _begun_inside(around: Round, name: str, growth: ast.stmt) -> bool:
    """True if each round of the loop begins with a new object."""
    loop = around.loop
    body = [] if loop is None or isinstance(loop, ast.comprehension) else loop.body
    for each in body:
        if not isinstance(each, ast.Assign) or each is growth:
            continue
        if any(dotted(at) == name for at in each.targets) and not _made_of_itself(each.value, name):
            return True
    return False


# One by one.


def one_by_one(program: Program) -> Iterator[Finding]:
    """Calls of a library for one thing at a time, where the library's own Python code has the time."""
    for hot in hot_lines(program):
        spot = hot.spot
        element = _element(hot)
        if element is not None:
            yield spot.finding(
                f"{short(element[0])} takes one element at a time out of {short(element[0].value, 30)},"
                f" {element[1].each}: each becomes an object of its own.",
                f"convert all of {short(element[0].value, 30)} once, before the loop ({element[2]}), and go through the"
                " result; or an expression with whole arrays or columns",
            )
            continue
        package = package_of(spot)
        if not package or spot.below.packages.get(package, 0.0) < MOSTLY * spot.line.cpu_s:
            continue
        mapped = _mapped(spot)
        if mapped is not None:
            part = percent(spot.part(spot.below.packages[package]))
            yield spot.finding(
                f"{short(mapped[0])} calls {mapped[1]} for each value: {part} % of the line's time is Python code of"
                f" {package}.",
                f"what {_owner_library(spot)} has for the whole column{_of_dates(mapped[1])}; or, where values come"
                " again, one call for each different one (unique(), functools.cache)",
            )
            continue
        node = next((each for each in hot.calls if verbs.itemwise(verbs.last(each))), None) or _access(spot)
        if node is None:
            continue
        chain = hot.levels(node)
        around = next(rounds(chain), None)
        if around is None or around.loop is None or isinstance(around.loop, ast.While):
            continue
        same = Sameness(chain, around)
        owner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        owner = node.value if isinstance(node, ast.Subscript) else owner
        if owner is None or same.of(owner) != SAME or not any(same.varying(each) for each in _given(node)):
            continue
        if _goes_on(node, spot):
            continue
        own = spot.below.packages[package]
        yield spot.finding(
            f"{short(node)} is done for one at a time, {around.each}: {percent(spot.part(own))} % of the line's time is"
            f" Python code of {package}.",
            f"one call of {package} for all of them (whole arrays or columns, a list, a batch), or what {package} can"
            " prepare or compile once, before the loop",
        )


def each_pair(program: Program) -> Iterator[Finding]:
    """A library's function that is called for each pair of what two loops go through, with the same data each time."""
    for hot in hot_lines(program):
        spot = hot.spot
        if outside_s(spot) < MOSTLY * spot.line.cpu_s:
            continue
        for node in hot.calls:
            chain = hot.levels(node)
            around = [each for each in rounds(chain) if isinstance(each.loop, ast.For | ast.comprehension)]
            if len(around) < 2 or verbs.constructs(node) or verbs.stateful(node, spot.names):
                continue
            inner, outer = (Sameness(chain, each) for each in around[:2])
            given = _given(node)
            steady = [each for each in given if inner.of(each) == SAME and outer.of(each) == SAME]
            of_inner = [each for each in given if inner.varying(each)]
            of_outer = [each for each in given if inner.of(each) == SAME and outer.varying(each)]
            whole = next((each for each in steady if not isinstance(each, ast.Constant)), None)
            if whole is None or len(of_inner) != 1 or len(of_outer) != 1:
                continue
            one, other = short(of_outer[0], 30), short(of_inner[0], 30)
            yield spot.finding(
                f"{short(node)} is called anew for each pair of {one} and {other}, and begins with {short(whole, 30)}"
                " each time.",
                f"a form of it for one {one} with every {other}, or the reverse, in one call (single source, all pairs,"
                " a matrix, a list)",
            )
            break


_MAPPING = frozenset({"apply", "map", "transform", "applymap", "map_elements", "map_rows", "apply_along_axis", "agg"})
_TABLES = ("pandas", "polars", "numpy", "pyarrow", "xarray", "geopandas", "dask")


def _mapped(spot: Spot) -> tuple[ast.Call, str] | None:
    """A method of a table or an array on a line that calls a library's function for each value, and that function."""
    for node in spot.expressions():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        given = dotted(node.args[0])
        name = None if given is None else given.rpartition(".")[2]
        if node.func.attr not in _MAPPING or name is None or not spot.names.imports(*_TABLES):
            continue
        if any(each.name == name and each.total_s >= MOSTLY * spot.line.cpu_s for each in spot.below.python):
            return node, str(given)
    return None


def _owner_library(spot: Spot) -> str:
    found = [each for each in _TABLES if any(f"/{each}/" in callee.where for callee in spot.below.python)]
    return found[0] if found else "the library"


def _of_dates(name: str) -> str:
    is_date = {"parse", "date", "strptime", "datetime", "fromisoformat"} & set(verbs.words(name))
    return " (pandas.to_datetime(..., format=...) of dates)" if is_date else ""


_LISTS = {"pyarrow": "to_pylist(), to_numpy()", "polars": "to_list(), to_numpy()", "numpy": "tolist()"}
_LISTS["pandas"] = "tolist(), to_numpy()"


def _element(hot: Hot) -> tuple[ast.Subscript, Round, str] | None:
    """Elements that a line takes out of a table or array by the loop's number, the loop, and how to convert all."""
    spot = hot.spot
    spent = {name: _library_s(spot, name) for name in _LISTS}
    library = max(spent, key=lambda each: spent[each])
    if spent[library] < MOSTLY * spot.line.cpu_s:
        return None
    for node in spot.expressions():
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load) or dotted(node.value) is None:
            continue
        taken = spot.module.parent.get(node)
        is_one = isinstance(taken, ast.Attribute) and taken.attr in ("as_py", "item")
        if not is_one:
            continue
        chain = hot.levels(node)
        around = next(rounds(chain), None)
        if around is None or not isinstance(around.loop, ast.For | ast.comprehension):
            continue
        same = Sameness(chain, around)
        if same.of(node.value) == SAME and same.varying(node.slice):
            return node, around, _LISTS[library]
    return None


def _library_s(spot: Spot, package: str) -> float:
    python = spot.below.packages.get(package, 0.0)
    return max(python, sum(each.own_s for each in spot.below.native if f"/{package}" in each.path))


def _goes_on(node: ast.expr, spot: Spot) -> bool:
    """True if a statement binds what it is given: each round needs the one before."""
    statement = spot.module.statement(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    bound = {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return any(
        isinstance(each, ast.Name) and each.id in bound and isinstance(each.ctx, ast.Load) for each in ast.walk(node)
    )


def _access(spot: Spot) -> ast.Subscript | None:
    if any(isinstance(each, ast.Call) and verbs.last(each) not in TRIVIAL for each in spot.expressions()):
        return None  # a call may have the time
    found = (each for each in spot.expressions() if isinstance(each, ast.Subscript))
    return next((each for each in found if not isinstance(each.slice, ast.Slice | ast.Constant)), None)


def _given(node: ast.Call | ast.Subscript) -> list[ast.expr]:
    return [node.slice] if isinstance(node, ast.Subscript) else [*node.args, *(each.value for each in node.keywords)]


# Arithmetic.

_NUMERIC = frozenset(
    {
        *(
            "range",
            "len",
            "abs",
            "min",
            "max",
            "int",
            "float",
            "round",
            "sum",
            "sqrt",
            "exp",
            "log",
            "sin",
            "cos",
            "pow",
        ),
        *("hypot", "atan2", "floor", "ceil", "append", "enumerate", "zip", "divmod"),
    }
)
NUMBERS_SHARE = 0.40
MIN_OPERATIONS = 3


def python_arithmetic(program: Program) -> Iterator[Finding]:
    """Loops whose bodies are arithmetic with single numbers, all of it run by the interpreter."""
    for file, names in program.files():
        lines = [each for each in program.facts.lines if each.file_id == file and each.cpu_s > 0]
        for function in [each for each in names.module.parent if isinstance(each, ast.FunctionDef)]:
            mine = [each for each in lines if function.lineno <= each.line <= (function.end_lineno or 0)]
            cpu_s = sum(each.cpu_s for each in mine)
            share, low = program.facts.low(cpu_s)
            if low < NUMBERS_SHARE or any(
                (file, each) in program.told for each in range(function.lineno, (function.end_lineno or 0) + 1)
            ):
                continue
            top = mine[0]
            spot = Spot(program, top, names)
            if outside_s(spot) > MOSTLY * top.cpu_s or not _arithmetic(function, names):
                continue
            yield Finding(
                share,
                time_figure(share, cpu_s),
                f"“{function.name}” calculates with one number at a time, in nested loops: the interpreter runs each"
                " operation.",
                "operations on whole arrays (NumPy), if no round needs the one before; or compile the function"
                f" (numba.njit on “{function.name}”, Cython)",
                file,
                top.line,
                function.name,
            )


def _arithmetic(function: ast.FunctionDef, names: Names) -> bool:
    """True if a function has nested loops over ranges, whose innermost body is arithmetic alone."""
    inner = [each for each in ast.walk(function) if isinstance(each, ast.For) and len(names.module.loops(each)) >= 1]
    for loop in inner:
        body = [node for statement in loop.body for node in ast.walk(statement)]
        kinds = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)
        operations = sum(isinstance(each, ast.BinOp | ast.AugAssign) and isinstance(each.op, kinds) for each in body)
        calls = [each for each in body if isinstance(each, ast.Call)]
        texts = any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in body)
        ranged = isinstance(loop.iter, ast.Call) and verbs.last(loop.iter) == "range"
        if ranged and operations >= MIN_OPERATIONS and not texts and all(verbs.last(e) in _NUMERIC for e in calls):
            return True
    return False
