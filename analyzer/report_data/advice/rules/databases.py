"""Rules about databases: queries of each round of a loop, and queries that no index can serve."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ....source_code.names import Names
from ....source_code.source import names_in, short
from ...numbers import seconds
from ..program import MOSTLY, Finding, Program, Rule, Spot

QUERY_PART = 0.20
"""Waiting for answers at a line that queries in a loop, as a part of the time that the program ran."""

QUERY_SHARE = 0.10
"""The part of the CPU time that such a line has, at the low end of its interval, where no answer is waited for."""

MIN_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Mapper:
    """A library that maps rows to objects."""

    loader: tuple[str, ...]
    """The functions that query for the object behind an attribute, which nothing has loaded yet."""
    loader_file: str
    queries: tuple[str, ...]
    """The functions that a query of the program itself goes through."""
    queries_file: str
    together: str
    """The form that has objects loaded with those that the loop goes through."""
    for_all: str
    """The form that queries for all rounds at once."""


MAPPERS = (
    Mapper(
        ("get_rel_instance",),
        "/peewee.py",
        ("execute", "execute_sql"),
        "/peewee.py",
        "have the query of the loop select “{relation}” with it, by .join(), or prefetch()",
        "Model.select().where(Model.id.in_(...)) once before the loop, and a dict of its rows",
    ),
    Mapper(
        ("_emit_lazyload",),
        "/sqlalchemy/orm/strategies.py",
        ("execute", "_execute_internal", "get", "scalars", "_get_impl"),
        "/sqlalchemy/orm/session.py",
        "have the query of the loop load “{relation}” with it, by .options(selectinload(...)) or joinedload(...)",
        "select(Model).where(Model.id.in_(...)) once before the loop, and a dict of its rows",
    ),
    Mapper(
        ("__get__", "get_object"),
        "/django/db/models/fields/related_descriptors.py",
        ("get", "_fetch_all", "first", "exists", "count", "get_or_create"),
        "/django/db/models/query.py",
        "have the query of the loop load “{relation}” with it, by .select_related(...) or prefetch_related(...)",
        "Model.objects.in_bulk(...) or filter(pk__in=...) once before the loop",
    ),
)
"""Mappers whose functions are known. To add one: a row here, and a case in the tests of this rule."""

_ANSWERS = frozenset(
    {"get", "get_or_none", "get_by_id", "first", "one", "one_or_none", "scalar", "scalar_one", "scalar_one_or_none"}
    | {"count", "exists", "scalars", "execute"}
)
"""Methods that query for one answer."""

_WRITES = frozenset({"update", "insert", "delete", "create", "save", "add", "get_or_create", "bulk_create"})


def lazy_relation(program: Program) -> Iterator[Finding]:
    """``order.customer.name`` in a loop over orders, where each customer is a query of its own."""
    for spot in program.spots:
        if spot.line.low < QUERY_SHARE:
            continue
        for mapper in MAPPERS:
            if spot.below.python_s(mapper.loader_file, *mapper.loader) < MOSTLY * spot.line.cpu_s:
                continue
            relation = next((found for node in spot.expressions() if (found := _relation(node, spot))), None)
            if relation is not None:
                yield spot.finding(
                    f"“{relation[0]}.{relation[1]}” is not loaded yet: each round of the loop sends a query for it.",
                    mapper.together.format(relation=relation[1]),
                )
                break


def _relation(node: ast.expr, spot: Spot) -> tuple[str, str] | None:
    """An attribute of what a loop goes through, as its name and the attribute's."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return None
    rounds = {each.id for loop in _loops(node, spot) for each in ast.walk(loop) if isinstance(each, ast.Name)}
    if node.value.id in rounds or _for_each(node.value.id, node, spot):
        return node.value.id, node.attr
    return None


def _loops(node: ast.AST, spot: Spot) -> list[ast.expr]:
    """The targets of the loops that run a node."""
    return [loop.target for loop in spot.module.loops(node) if not isinstance(loop, ast.While)]


def _for_each(name: str, node: ast.AST, spot: Spot) -> bool:
    """True if a name is an argument of a function that the file calls in a loop."""
    scope = spot.module.scope(node)
    if not isinstance(scope, ast.FunctionDef) or name not in {each.arg for each in scope.args.args}:
        return False
    calls = (each for each in spot.module.parent if isinstance(each, ast.Call))
    return any(
        isinstance(each.func, ast.Name) and each.func.id == scope.name and bool(spot.module.loops(each))
        for each in calls
    )


def query_in_loop(program: Program) -> Iterator[Finding]:
    """One SELECT for each round of a loop, by a value of that round, which waits for each answer."""
    wall, facts = program.profile.totals.wall_s, program.facts
    if not wall:
        return
    # Drivers in C poll the socket, drivers in Python receive from it.
    answers, events = facts.waiting("socket"), facts.waiting("events")
    for place in {**answers, **events}:
        waited = answers.get(place, 0.0) + events.get(place, 0.0)
        names = program.names(place[0]) if waited >= max(MIN_SECONDS, QUERY_PART * wall) else None
        query = None if names is None else _query(names, place[1])
        if query is None:
            continue
        yield Finding(
            min(1.0, waited / wall),
            f"{seconds(waited)} of {seconds(wall)} waiting for the database",
            f"{short(query)} asks anew in each round of the loop, and waits for each answer.",
            "one query for all of them before the loop (WHERE ... IN, or a JOIN), and a dict of its rows",
            *place,
            facts.function(*place),
        )
    for spot in program.spots:
        answered = _answered_here(spot)
        if answered is not None:
            yield spot.finding(f"{short(answered[0])} asks anew in each round of the loop.", answered[1])


def _answered_here(spot: Spot) -> tuple[ast.Call, str] | None:
    """A query of a loop that most of a line's CPU time is in, and the form for all rounds."""
    if spot.line.low < QUERY_SHARE:
        return None
    query = _query(spot.names, spot.line.line)
    if query is not None and spot.below.library_s("sqlite3") >= MOSTLY * spot.line.cpu_s:
        return query, "one query for all of them before the loop (WHERE ... IN, or a JOIN), and a dict of its rows"
    for mapper in MAPPERS:
        if spot.below.python_s(mapper.queries_file, *mapper.queries) < MOSTLY * spot.line.cpu_s:
            continue
        for node in spot.expressions():
            if _asks(node, spot) and isinstance(node, ast.Call):
                return node, mapper.for_all
    return None


def _asks(node: ast.expr, spot: Spot) -> bool:
    """True of a call such as ``session.get(Model, number)`` with a value of the round of a for loop."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _ANSWERS:
        return False
    parts = list(ast.walk(node))
    if any(isinstance(each, ast.Attribute) and each.attr in _WRITES for each in parts):
        return False
    rounds = {each.id for target in _loops(node, spot)[:1] for each in ast.walk(target) if isinstance(each, ast.Name)}
    values = (each for call in parts if isinstance(call, ast.Call) for each in (*call.args, *call.keywords))
    return any(isinstance(each, ast.Name) and each.id in rounds for value in values for each in ast.walk(value))


def _query(names: Names, line: int) -> ast.Call | None:
    """A call of ``execute`` in a for loop, with a constant SELECT and a value that the loop goes through."""
    for node in names.module.expressions(line):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 2:
            continue
        text, values = node.args
        if node.func.attr not in ("execute", "fetchrow", "fetchval") or not _selects(text, names):
            continue
        loops = names.module.loops(node)
        if not loops or isinstance(loops[0], ast.While):
            continue
        counted = names_in(loops[0].target)
        if any(isinstance(each, ast.Name) and each.id in counted for each in ast.walk(values)):
            return node
    return None


def _selects(node: ast.expr, names: Names) -> bool:
    """True if a text is one constant SELECT with a condition."""
    words = (_constant(node, names) or "").upper().split()
    return words[:1] == ["SELECT"] and "WHERE" in words


def _constant(node: ast.expr, names: Names) -> str | None:
    """A constant text, or that of the only value of a name."""
    if isinstance(node, ast.Name):
        bound = names.binding(node.id, node)
        if len(bound) != 1 or bound[0] is None:
            return None
        node = bound[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


_CONDITION = re.compile(
    r"\s*(?P<name>\w+)\s*\((?P<given>[^()]*)\)\s*(?:=|<|>|\b(?:is|in|between|like)\b)", re.IGNORECASE
)
_COLUMN = re.compile(r"[a-z_][\w.]*", re.IGNORECASE)
_AFTER_WHERE = re.compile(r"\b(?:group\s+by|order\s+by|limit)\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\b(?:and|or|not|select|join|union|with|collate)\b", re.IGNORECASE)
_OF_DATES = frozenset({"strftime", "date", "datetime", "julianday", "unixepoch"})
_PREFIX = re.compile(r"'%Y(?:-%m(?:-%d(?:[ T]%H(?::%M(?::%S)?)?)?)?)?'")
"""Forms of strftime that are in the order of time: one value is a range of days."""
_OTHERS = frozenset({"strftime", "lower", "upper", "trim", "length", "substr"})


def function_of_column(program: Program) -> Iterator[Finding]:
    """``WHERE strftime('%Y', day) = ?``: the only condition is about a function of a column, so all rows are read."""
    for spot in program.spots:
        if spot.line.low < QUERY_SHARE or spot.below.library_s("sqlite3") < MOSTLY * spot.line.cpu_s:
            continue
        found = next((found for node in spot.expressions() if (found := _condition(node, spot.names))), None)
        if found is not None:
            yield spot.finding(
                f"{found[0]}() is applied to {found[1]} in each row of the table: no index on {found[1]} can be used.",
                found[2],
            )


def _condition(node: ast.expr, names: Names) -> tuple[str, str, str] | None:
    """A function and its column, which are the only condition of a query of one table, and what to write instead."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "execute":
        return None
    head, rest = _split((_constant(node.args[0], names) if node.args else None) or "")
    tables = re.split(r"\bfrom\b", head, flags=re.IGNORECASE)[-1]
    condition = _AFTER_WHERE.split(rest, maxsplit=1)[0]
    found = _CONDITION.match(condition)
    if not head.lower().startswith("select") or "," in tables or found is None:
        return None
    if _SEVERAL.search(head[len("select") :]) or _SEVERAL.search(condition):
        return None
    name, given = found["name"].lower(), [each.strip() for each in found["given"].split(",")]
    columns = [each for each in given if _COLUMN.fullmatch(each)]
    if len(columns) != 1 or _indexed(name, names):
        return None
    column = columns[0]
    if name in _OF_DATES and (name != "strftime" or _PREFIX.fullmatch(given[0])):
        return name, column, f"compare {column} itself: {column} >= ? AND {column} < ?, with an index on {column}"
    if name in _OTHERS and not any(each in ("'localtime'", "'utc'") for each in given):
        return name, column, f"an index on the expression itself: CREATE INDEX ... ({name}({', '.join(given)}))"
    return None


def _split(text: str) -> tuple[str, str]:
    """What is before and after the only WHERE of a query; empty if there is another number of them."""
    parts = re.split(r"\bwhere\b", " ".join(text.split()), flags=re.IGNORECASE)
    return (parts[0].strip(), parts[1]) if len(parts) == 2 else ("", "")


def _indexed(function: str, names: Names) -> bool:
    """True if the file has an index on an expression with this function."""
    texts = (
        each.value.lower()
        for each in names.module.parent
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )
    return any("index" in each and f"{function}(" in each.partition("index")[2] for each in texts)


PASSING = 0.02
"""The part of a line's time in going from one row to the next: a search by an index has none of it."""
SEARCHING = 0.8
"""The part of a line's time in the database's own code: a query that finds many rows takes long to hand them over."""

_EQUAL = re.compile(r"\s*(?:\w+\.)?(?P<column>[a-z_]\w*)\s*=\s*(?:\?|:\w+)\s*", re.IGNORECASE)
_FROM = re.compile(r"\bfrom\s+(?P<table>[a-z_]\w*)\s*$", re.IGNORECASE)
_CALCULATES = re.compile(
    r"\b(?:count|sum|avg|min|max|total|group_concat|distinct|join|union|with|select)\b", re.IGNORECASE
)


def no_index(program: Program) -> Iterator[Finding]:
    """``SELECT ... FROM member WHERE email = ?`` that goes through all rows of the table to find a few."""
    for spot in program.spots:
        if spot.line.low < QUERY_SHARE or spot.below.library_s("sqlite3") < SEARCHING * spot.line.cpu_s:
            continue
        passing = sum(each.own_s for each in spot.below.native if each.name == "sqlite3BtreeNext")
        executing = spot.below.native_s("sqlite3VdbeExec")
        found = next((found for node in spot.expressions() if (found := _searched(node, spot.names))), None)
        if found is None or passing < PASSING * spot.line.cpu_s or executing < SEARCHING * spot.line.cpu_s:
            continue
        table, column = found
        yield spot.finding(
            f"sqlite goes from row to row (sqlite3BtreeNext) to find those of {table} by {column}: it uses no index.",
            f"CREATE INDEX IF NOT EXISTS {table}_{column} ON {table}({column}), once; EXPLAIN QUERY PLAN then says"
            " SEARCH in place of SCAN",
        )


def _searched(node: ast.expr, names: Names) -> tuple[str, str] | None:
    """The table and the column of a query whose only condition is that the column has a value.

    None if the file makes an index of that name, or the column is a key.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "execute":
        return None
    head, rest = _split((_constant(node.args[0], names) if node.args else None) or "")
    condition = _AFTER_WHERE.split(rest, maxsplit=1)[0]
    equal, source = _EQUAL.fullmatch(condition), _FROM.search(head)
    if equal is None or source is None or not head.lower().startswith("select"):
        return None
    table, column = source["table"], equal["column"]
    if _CALCULATES.search(head[len("select") :]) or column.lower() in ("id", "rowid") or _has_key(column, names):
        return None
    return table, column


def _has_key(column: str, names: Names) -> bool:
    """True if a statement of the file makes an index or a key with a column, of whatever table."""
    texts = (
        each.value for each in names.module.parent if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )
    key = re.compile(rf"\bindex\b.*\b{column}\b|\b{column}\b[^,]*\b(?:primary|unique)\b", re.IGNORECASE | re.DOTALL)
    listed = re.compile(rf"\b(?:primary\s+key|unique)\s*\([^)]*\b{column}\b", re.IGNORECASE)
    return any(key.search(each) or listed.search(each) for each in texts)


RULES = (
    Rule(
        "no-index",
        "CPU time by line, with what sqlite3's function that goes to the next row had; the text of the query",
        "10 % of the CPU time at the line, 80 % of it in executing the query, 2 % in going to the next row",
        no_index,
        likely=True,
    ),
    Rule(
        "function-of-column",
        "CPU time by line, with what sqlite3 below it had; the text of the query",
        "10 % of the CPU time at the line, most of it in sqlite3; the query's only condition is a function of a column",
        function_of_column,
    ),
    Rule(
        "lazy-relation",
        "CPU time by line, with what the mapper's loader below it had; the loop in the source",
        "10 % of the CPU time at the line, most of it in loading an attribute of what a loop goes through",
        lazy_relation,
    ),
    Rule(
        "query-in-loop",
        "waits with their reasons, or CPU time in sqlite3 or a mapper; the query has a value of the round",
        "20 % of the time waiting for sockets at one line and 0.3 s, or 10 % of the CPU time, most of it in the query",
        query_in_loop,
    ),
)
