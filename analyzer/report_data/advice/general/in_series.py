"""A rule about waits that follow each other in a loop, whatever it is that is waited for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from ....recording.call_tree import NOTHING
from ....source_code.source import names_in, short
from ...numbers import seconds
from ..program import MOSTLY, Finding, Program
from ..rules.threads import LOCK_PART, MIN_SECONDS, SERIES_PART, stops
from . import verbs
from .rounds import SAME, Level, Round, Sameness, levels, rounds

_WAITED_FOR = {
    "socket": "an answer",
    "events": "an answer",
    "pipe": "a child process",
    "child process": "a child process",
}
"""What is certainly the doing of something else, by the reason of the wait."""

_SERVERS = (
    *("/socketserver.py", "/http/server.py", "/werkzeug/serving.py", "/uvicorn/server.py", "/aiohttp/web_protocol.py"),
    *("/tornado/http1connection.py", "/wsgiref/simple_server.py", "/hypercorn/run.py"),
)
SERVES = 0.05
"""The part of the CPU time from which on a program is a server, too."""

_IN_ORDER = frozenset(
    {
        *("execute", "executemany", "fetch", "fetchone", "fetchall", "commit", "send", "sendall", "recv", "receive"),
        *("write", "drain", "put", "read", "readline", "sleep", "wait", "join", "next", "acquire", "poll", "select"),
        *("run_until_complete", "result", "flush", "accept", "connect", "communicate", "get_nowait"),
    }
)
"""Calls of one stream, queue or connection, which serves one at a time."""


def waits_one_by_one(program: Program) -> Iterator[Finding]:
    """Lines of a for loop, or of what it calls, that wait for something else's work, one after the other."""
    wall, facts = program.profile.totals.wall_s, program.facts
    if not wall:
        return
    waited: dict[tuple[int, int], float] = {}
    reasons: dict[tuple[int, int], str] = {}
    for reason, what in _WAITED_FOR.items():
        for place, spent in facts.waiting(reason).items():
            waited[place] = waited.get(place, 0.0) + spent
            reasons.setdefault(place, what)
    mine = facts.amounts("main_wait_ns")
    if _served(program) >= SERVES * program.profile.totals.cpu_s:
        return  # a client of its own server, as tests have one
    for place, spent in sorted(waited.items(), key=lambda each: -each[1]):
        if spent < max(MIN_SECONDS, SERIES_PART * wall) or mine.get(place, 0.0) / 1e9 < 0.5 * spent:
            continue
        if any((file, line) in program.told for file, line in [place]) or program.coroutine(*place) is not None:
            continue
        found = _series(program, *place)
        if found is None:
            continue
        call, around = found
        yield Finding(
            min(1.0, spent / wall),
            f"{seconds(spent)} of {seconds(wall)} waiting for {reasons[place]}",
            f"{short(call)} waits for {reasons[place]} {around.each}, one after the other.",
            "if no round needs the one before, several at once: concurrent.futures.ThreadPoolExecutor(8).map() of what"
            " the loop does",
            *place,
            facts.function(*place),
        )


def _served(program: Program) -> float:
    """CPU seconds below functions of servers that run the program's own code."""
    profile = program.profile.calls
    paths = [each.replace("\\", "/") for each in profile.tree.paths]
    files = {number for number, path in enumerate(paths) if path.endswith(_SERVERS)}
    tree = profile.tree
    serving = np.isin(tree.file, list(files)) if files else np.zeros(len(tree), np.bool_)
    outermost = tree.outermost(np.where(serving, 0, NOTHING).astype(np.int64))
    below = tree.below(profile.sums.nodes[:, [profile.sums.column("cpu_ns")]])
    return float(below[outermost].sum()) / 1e9


def pool_waits(program: Program) -> Iterator[Finding]:
    """Lines that wait for one of a library's pooled objects, which others hold meanwhile."""
    wall, facts = program.profile.totals.wall_s, program.facts
    if not wall:
        return
    elsewhere = facts.waiting_at_lines(("lock", "GIL", "lock or GIL", "unknown"))
    for (file, line), waited in facts.waiting("lock").items():
        if waited < max(MIN_SECONDS, LOCK_PART * wall):
            continue
        inside = facts.waited_in(file, line, "lock")
        takes = [name for name, spent in inside.items() if spent >= MOSTLY * waited and _takes_from_pool(name)]
        if not takes:
            continue
        taker = max(takes, key=lambda name: (inside[name], "pool" in name.lower().rpartition(".")[0], len(name)))
        held = {at: spent for at, spent in elsewhere.items() if at[0] == file and at[1] in _after(program, file, line)}
        longest = max(held, key=lambda at: held[at], default=None)
        if waited < wall and (longest is None or held[longest] < MIN_SECONDS):
            continue  # a short wait at a pool that is only just too small
        meanwhile, first = "", "hold what it gives for a shorter time, or make the pool larger"
        if longest is not None and held[longest] >= MIN_SECONDS:
            meanwhile = f", while those that have one wait at line {longest[1]} ({seconds(held[longest])})"
            first = f"give it back (close, commit, end the with block) before line {longest[1]} waits, or a larger pool"
        yield Finding(
            min(1.0, waited / wall),
            f"{seconds(waited)} of all threads waiting, in {seconds(wall)}",
            f"This line waits for one of a pool, in {taker}(){meanwhile}: the pool has fewer than work at a time.",
            first,
            file,
            line,
            facts.function(file, line),
        )


def _takes_from_pool(name: str) -> bool:
    owner, _, function = name.rpartition(".")
    taking = {"get", "acquire", "checkout", "connect", "connection", "borrow", "getconn", "take", "lease"}
    return "pool" in verbs.words(owner) and bool(taking & set(verbs.words(function)))


def _after(program: Program, file: int, line: int) -> range:
    """The lines after a line in its “with” block, or else its function: what it took may be held there."""
    names = program.names(file)
    statements = [] if names is None else names.module.statements.get(line, [])
    if names is None or not statements:
        return range(0)
    at: ast.AST = statements[-1]
    while at in names.module.parent and not isinstance(at, ast.With | ast.AsyncWith | ast.FunctionDef):
        at = names.module.parent[at]
    return range(line + 1, (getattr(at, "end_lineno", None) or line) + 1)


def _series(program: Program, file: int, line: int) -> tuple[ast.Call, Round] | None:
    """The call on a line that waits, and the loop that runs it for each of many things."""
    names = program.names(file)
    calls = [] if names is None else [each for each in names.module.expressions(line) if isinstance(each, ast.Call)]
    chain = program.facts.callers(file, line, "wait_ns")
    for node in calls[:1]:
        if verbs.last(node) in _IN_ORDER:
            return None
        found = levels(program, chain, node)
        around = next(rounds(found), None)
        if around is None or not isinstance(around.loop, ast.For | ast.comprehension):
            return None
        level = found[around.level]
        call = level.call if around.level else node
        if (
            call is None
            or stops(level.names.module, around.loop, level.names)
            or not _apart(call, level, around, found)
        ):
            return None
        return node, around
    return None


def _apart(call: ast.Call, level: Level, around: Round, found: list[Level]) -> bool:
    """True if a call is given something of its round, and nothing that earlier rounds made."""
    loop = around.loop
    assert isinstance(loop, ast.For | ast.comprehension)
    targets = names_in(loop.target)
    same = Sameness(found, around)
    given = [*call.args, *(each.value for each in call.keywords)]
    names = {each.id for value in given for each in ast.walk(value) if isinstance(each, ast.Name)}
    made = [
        each
        for value in given
        for each in ast.walk(value)
        if isinstance(each, ast.Name) and each.id not in targets and same.of(each, around.level) != SAME
    ]
    statement = level.names.module.statement(call)
    bound = {each.id for at in getattr(statement, "targets", []) for each in ast.walk(at) if isinstance(each, ast.Name)}
    return bool(names & targets) and not made and not bound & names
