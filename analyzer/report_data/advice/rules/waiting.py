"""Rules about waiting for the world: event loops that are held up, and round trips that could be one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import Names
from ....source_code.source import short
from ...numbers import seconds
from ..program import Finding, Program, Rule

BLOCKED_PART = 0.05
"""Waiting at one line below a coroutine, as a part of the time that the program ran."""

COMMIT_PART = 0.20
"""Time at a line that commits in a loop, running and waiting, as a part of the time that the program ran."""

QUERY_PART = 0.20
"""Waiting for answers at a line that queries in a loop, as a part of the time that the program ran."""

MIN_SECONDS = 0.3

_OTHERS = ("GIL", "lock or GIL", "unknown")
"""Reasons of waiting that are not certainly the line's doing."""

_SLEEPS = frozenset({"time.sleep"})
_PROCESSES = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "getoutput"))
_CLIENTS = ("requests", "urllib", "urllib3", "httpx", "http")


def blocked_loop(program: Program) -> Iterator[Finding]:
    """Lines that wait below a coroutine, not by ``await``: nothing else in its event loop runs meanwhile."""
    wall, facts = program.profile.totals.wall_s, program.facts
    if not wall:
        return
    for (file, line, coroutine), waited in facts.waiting_below(program.coroutine, _OTHERS).items():
        names = program.names(file)
        if names is None or waited < max(MIN_SECONDS, BLOCKED_PART * wall):
            continue
        yield Finding(
            min(1.0, waited / wall),
            f"{seconds(waited)} of {seconds(wall)} waiting while “{coroutine}” holds up its event loop",
            "This line waits inside of a coroutine, not by await: the event loop runs nothing else meanwhile.",
            _awaited(names, line),
            file,
            line,
            facts.function(file, line),
        )


def _awaited(names: Names, line: int) -> str:
    """The way to wait for the same without holding up the loop."""
    called = [names.called(node) or "" for node in names.module.expressions(line) if isinstance(node, ast.Call)]
    if any(name in _SLEEPS for name in called):
        return "await asyncio.sleep()"
    if any(name in _PROCESSES for name in called):
        return "await asyncio.create_subprocess_exec(), or await asyncio.to_thread() of the same call"
    if any(name.partition(".")[0] in _CLIENTS for name in called):
        return "an asynchronous client (httpx.AsyncClient, aiohttp), or await asyncio.to_thread() of the same call"
    return "await asyncio.to_thread() of the function that waits, or a library that is made for asyncio"


def commit_in_loop(program: Program) -> Iterator[Finding]:
    """``connection.commit()`` of sqlite3 in a for loop: each one waits until the disk has the file."""
    wall, facts = program.profile.totals.wall_s, program.facts
    if not wall:
        return
    waited = facts.waiting_at_lines(_OTHERS)
    spent = {(line.file_id, line.line): line.cpu_s for line in facts.lines}
    for place in {**waited, **spent}:
        took = waited.get(place, 0.0) + spent.get(place, 0.0)
        names = program.names(place[0]) if took >= max(MIN_SECONDS, COMMIT_PART * wall) else None
        if names is None or not names.imports("sqlite3") or not _commits(names, place[1]):
            continue
        yield Finding(
            min(1.0, took / wall),
            f"{seconds(took)} of {seconds(wall)} committing",
            "Each round of the loop commits, and a commit waits until the file is on the disk.",
            "commit once, after the loop (“with connection:” around it), or every few thousand rows",
            *place,
            facts.function(*place),
        )


def _commits(names: Names, line: int) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "commit"
        and not node.args
        and any(isinstance(loop, ast.For) for loop in names.module.loops(node)[:1])
        for node in names.module.expressions(line)
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
        counted = {each.id for each in ast.walk(loops[0].target) if isinstance(each, ast.Name)}
        if any(isinstance(each, ast.Name) and each.id in counted for each in ast.walk(values)):
            return node
    return None


def _selects(node: ast.expr, names: Names) -> bool:
    """True if a text is one constant SELECT with a condition."""
    if isinstance(node, ast.Name):
        bound = names.binding(node.id, node)
        if len(bound) != 1 or bound[0] is None:
            return False
        node = bound[0]
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    words = node.value.upper().split()
    return words[:1] == ["SELECT"] and "WHERE" in words


RULES = (
    Rule(
        "blocked-loop",
        "waits with their reasons, and the source text of the coroutine",
        "5 % of the time waiting at one line with a coroutine among its callers, and 0.3 s",
        blocked_loop,
    ),
    Rule(
        "commit-in-loop",
        "waits with their reasons, CPU time by line; the file imports sqlite3",
        "20 % of the time at one line that commits in a loop, and 0.3 s",
        commit_in_loop,
    ),
    Rule(
        "query-in-loop",
        "waits with their reasons; the query is a constant SELECT with a value of the round",
        "20 % of the time waiting for sockets at one line, and 0.3 s",
        query_in_loop,
    ),
)
