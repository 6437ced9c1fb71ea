"""Rules about searches: through the same whole in each round of a loop, and of two loops for what belongs together."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import TEXT, Names
from ....source_code.source import dotted, names_in, short
from ..program import MOSTLY, Finding, Program, Spot, time_figure
from . import verbs
from .hot import LEAST, Hot, hot_lines
from .rounds import SAME, Level, Round, Sameness, levels, rounds

# Searches.


def search_in_loop(program: Program) -> Iterator[Finding]:
    """Searches through the same whole, for another thing in each round of a loop."""
    for hot in hot_lines(program):
        for node in _searches(hot):
            found = _searched(hot, *node)
            if found is not None:
                yield found
                break


def _searches(hot: Hot) -> Iterator[tuple[ast.expr, ast.expr, list[ast.expr]]]:
    """Searches on a line: the node, what is searched, what is looked for."""
    spot = hot.spot
    for call in hot.calls:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not verbs.searches(call) or owner is None or spot.names.called(call) is not None:
            continue
        if not _is_index(owner, spot.names):
            yield call, owner, [*call.args, *(each.value for each in call.keywords)]
    if _arrays_s(spot) < MOSTLY * spot.line.cpu_s:
        return
    for node in spot.expressions():
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            for whole, value in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
                if not isinstance(whole, ast.Constant):
                    yield node, whole, [value]


def _arrays_s(spot: Spot) -> float:
    """CPU time in libraries of arrays and tables."""
    packages = ("numpy", "pandas", "polars", "pyarrow", "_polars_runtime_32", "scipy")
    python = sum(spent for name, spent in spot.below.packages.items() if name in packages)
    native = sum(each.own_s for each in spot.below.native if any(f"/{name}" in each.path for name in packages))
    return max(python, native)


def _is_index(owner: ast.expr, names: Names) -> bool:
    """True if what is searched is made to be searched, or is a pattern or a text."""
    if names.kind(owner) == TEXT or isinstance(owner, ast.Constant):
        return True
    values = names.values(owner) if isinstance(owner, ast.Name | ast.Attribute) else [owner]
    texts = [dotted(owner) or "", *(verbs.last(each) for each in values if each is not None)]
    return any(
        word in text.lower() for text in texts for word in ("tree", "index", "compile", "regex", "pattern", "re.")
    )


def _searched(hot: Hot, node: ast.expr, whole: ast.expr, values: list[ast.expr]) -> Finding | None:
    chain = hot.levels(node)
    for around in rounds(chain):
        same = Sameness(chain, around)
        sought = next((each for each in values if same.varying(each)), None)
        if sought is None or isinstance(around.loop, ast.While):
            continue
        if same.of(whole) != SAME:
            return None
        text = short(whole, 30)
        return hot.spot.finding(
            f"{short(node)} goes through all of {text} {around.each}, each time for another {_which(sought, same)}.",
            f"go through {text} once, before the loop, into a dict by what is looked for (of tables: groupby, a join or"
            " merge, an index), and look it up here",
        )
    return None


_EVALUATING = frozenset(
    {"collect", "compute", "fetch", "to_pandas", "toPandas", "execute", "to_arrow", "to_list", "df"}
)


def lazy_in_loop(program: Program) -> Iterator[Finding]:
    """Queries that are evaluated in each round of a loop, each time over all of the same data."""
    threads = program.facts.amounts("pool_ns")
    spent = {(each.file_id, each.line): each.cpu_s for each in program.facts.lines}
    for place in {**spent, **threads}:
        cpu_s = spent.get(place, 0.0) + threads.get(place, 0.0) / 1e9
        share, low = program.facts.low(cpu_s)
        names = program.names(place[0]) if low >= LEAST and place not in program.told else None
        for node in [] if names is None else list(names.module.expressions(place[1])):
            query = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
            if query is None or verbs.last(node) not in _EVALUATING or _arrays_packages(names) is None:
                continue
            chain = levels(program, program.facts.callers(*place) or program.facts.callers(*place, "wait_ns"), node)
            found = _evaluated(query, chain)
            if found is None:
                continue
            whole, sought, around = found
            yield Finding(
                share,
                time_figure(share, cpu_s),
                f"{short(node)} evaluates a query of all of {whole} {around.each}, each time for another {sought}: a"
                " lazy query reads and computes it all again.",
                f"evaluate what is the same once, before the loop ({whole} itself, where it fits into memory); or one"
                f" query for all of them: group_by or partition_by {sought}",
                *place,
                program.facts.function(*place),
            )
            break


def _arrays_packages(names: Names | None) -> str | None:
    """The library of lazy tables that a file imports."""
    found = (
        each for each in ("polars", "dask", "pyspark", "duckdb", "ibis", "xarray") if names and names.imports(each)
    )
    return next(found, None)


def _evaluated(query: ast.expr, chain: list[Level]) -> tuple[str, str, Round] | None:
    """The data that a query is about, what varies in it, and the loop."""
    for around in rounds(chain):
        same = Sameness(chain, around)
        parts = [
            each for each in ast.walk(query) if isinstance(each, ast.Name) and each.id not in chain[0].names.modules
        ]
        functions = {each.func for each in ast.walk(query) if isinstance(each, ast.Call)}
        data = [each for each in parts if each not in functions]
        steady = [each for each in data if same.of(each) == SAME]
        moving = [each for each in data if same.varying(each)]
        if steady and moving and not isinstance(around.loop, ast.While):
            return steady[0].id, moving[0].id, around
    return None


def _which(sought: ast.expr, same: Sameness) -> str:
    """The part of an expression that varies."""
    names = [each for each in ast.walk(sought) if isinstance(each, ast.Name) and same.varying(each)]
    return names[0].id if len(names) == 1 else short(sought, 30)


def pairs(program: Program) -> Iterator[Finding]:
    """Two nested loops of Python over two collections, of which the inner one looks for what belongs to the outer."""
    for hot in hot_lines(program):
        spot = hot.spot
        nodes = spot.module.statements.get(spot.line.line, [])[-1:] or []
        comparing = [each for each in spot.expressions() if isinstance(each, ast.Compare)]
        for node in [*comparing[:1], *nodes]:
            chain = hot.levels(node)
            around = list(rounds(chain))
            inner = around[0] if around and around[0].level == 0 else None
            if inner is None or inner.loop is None or isinstance(inner.loop, ast.While) or len(around) < 2:
                continue
            over = _collection(inner.loop.iter)
            test = _test(spot, inner)
            if over is None or test is None:
                continue
            outer = next((each for each in around[1:] if not isinstance(each.loop, ast.While)), None)
            if outer is None or Sameness(chain, outer).of(over) != SAME:
                continue
            lines = range(inner.line, 1 + max(getattr(inner.loop, "end_lineno", 0) or 0, spot.line.line))
            mine = (each for each in program.facts.lines if each.file_id == spot.line.file_id and each.line in lines)
            cpu_s = sum(each.cpu_s for each in mine)
            share, low = program.facts.low(cpu_s)
            if low < LEAST:
                continue
            equal = isinstance(test.ops[0], ast.Eq)
            instead = (
                "a dict from what is compared to the items, made once before, and a look-up in place of the inner loop"
                if equal
                else "sort once and use bisect, or divide them into cells or a tree (scipy.spatial.cKDTree), so that"
                " each is compared with those near it only"
            )
            yield spot.finding(
                f"All of {short(over, 30)} is gone through {outer.each}, and compared one by one: {short(test)}.",
                instead,
                time_figure(share, cpu_s),
                share,
            )
            break


def _collection(over: ast.expr) -> ast.expr | None:
    """The name that a loop goes through, or goes through a simple view of."""
    if isinstance(over, ast.Call) and over.args and verbs.last(over) in ("enumerate", "reversed", "sorted", "list"):
        over = over.args[0]
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and not over.args:
        return over if over.func.attr in ("items", "values", "keys", "itertuples") else None
    if isinstance(over, ast.Subscript) and isinstance(over.slice, ast.Slice):
        over = over.value
    return over if dotted(over) is not None else None


def _test(spot: Spot, inner: Round) -> ast.Compare | None:
    """The comparison by which the inner loop selects: one side has the item, another does not."""
    loop = inner.loop
    assert loop is not None
    assert not isinstance(loop, ast.While)
    items = names_in(loop.target)
    parts = (
        loop.ifs
        if isinstance(loop, ast.comprehension)
        else [each.test for statement in loop.body for each in ast.walk(statement) if isinstance(each, ast.If)]
    )
    for part in parts:
        for node in ast.walk(part):
            if not isinstance(node, ast.Compare) or len(node.ops) != 1:
                continue
            sides = [names_in(each) for each in (node.left, node.comparators[0])]
            equal = isinstance(node.ops[0], ast.Eq)
            if equal and any(items & mine and other and not items & other for mine, other in (sides, sides[::-1])):
                return node
            far = isinstance(node.ops[0], ast.Lt | ast.LtE) and isinstance(node.left, ast.Call)
            if (
                far
                and items & sides[0]
                and sides[0] - items
                and verbs.last(node.left) in ("abs", "hypot", "distance", "dist")
            ):
                return node
    return None
