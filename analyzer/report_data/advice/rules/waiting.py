"""Rules about waiting for the world: event loops that are held up, commits that could be one, repeated processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import Names
from ...numbers import seconds
from ..program import Finding, Program, Rule
from .repeated import Round, round_of

BLOCKED_PART = 0.05
"""Waiting at one line below a coroutine, as a part of the time that the program ran."""

COMMIT_PART = 0.20
"""Time at a line that commits in a loop, running and waiting, as a part of the time that the program ran."""

MIN_SECONDS = 0.3

_OTHERS = ("GIL", "lock or GIL", "unknown")
"""Reasons of waiting that are not certainly the line's doing."""

_SLEEPS = frozenset({"time.sleep"})
_PROCESSES = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "getoutput"))
_IN_THREAD = {"trio": "trio.to_thread.run_sync", "anyio": "anyio.to_thread.run_sync"}
"""Other libraries of tasks than asyncio, in the order in which a file's imports decide, and how they use threads."""
_CLIENTS = ("requests", "urllib", "urllib3", "httpx", "http")


def blocked_loop(program: Program) -> Iterator[Finding]:
    """Lines that wait below a coroutine, not by ``await``: nothing else in its event loop runs meanwhile."""
    wall, facts = program.profile.totals.wall_s, program.facts
    if not wall:
        return
    whose = program.profile.step_waits
    for (file, line, coroutine), waits in facts.waiting_below(program.coroutine, _OTHERS).items():
        names, waited = program.names(file), sum(ns for _, ns in waits) / 1e9
        if names is None or waited < max(MIN_SECONDS, BLOCKED_PART * wall):
            continue
        task, span = (None, None) if whose is None else whose.mostly(waits)
        known = (("task", task), ("span", span))
        mostly = ", ".join(f"{what} “{name}”" for what, name in known if name is not None)
        yield Finding(
            min(1.0, waited / wall),
            f"{seconds(waited)} of {seconds(wall)} waiting while “{coroutine}” holds up its event loop"
            + (f" ({mostly})" if mostly else ""),
            "This line waits inside of a coroutine, not by await: the event loop runs nothing else meanwhile.",
            _awaited(names, line),
            file,
            line,
            facts.function(file, line),
        )


def _awaited(names: Names, line: int) -> str:
    """The way to wait for the same without holding up the loop."""
    calls = [node for node in names.module.expressions(line) if isinstance(node, ast.Call)]
    called = [names.called(node) or _of_made(node, names) for node in calls]
    library = next((name for name in _IN_THREAD if names.imports(name)), "asyncio")
    in_thread = _IN_THREAD.get(library, "asyncio.to_thread")
    if any(name in _SLEEPS for name in called):
        return f"await {library}.sleep()"
    if any(name in _PROCESSES for name in called):
        process = "asyncio.create_subprocess_exec" if library == "asyncio" else f"{library}.run_process"
        return f"await {process}(), or await {in_thread}() of the same call"
    if any(name.partition(".")[0] in _CLIENTS for name in called):
        clients = "httpx.AsyncClient, aiohttp" if library == "asyncio" else "httpx.AsyncClient"
        return f"an asynchronous client ({clients}), or await {in_thread}() of the same call"
    return f"await {in_thread}() of the function that waits, or a library that is made for {library}"


def _of_made(call: ast.Call, names: Names) -> str:
    """What made the object whose method is called, such as ``httpx.Client`` of ``client.get()``; empty if unknown."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    bound = names.binding(owner.id, owner) if isinstance(owner, ast.Name) else []
    made = bound[0] if len(bound) == 1 else None
    return (names.called(made) or "") if made is not None else ""


def commit_in_loop(program: Program) -> Iterator[Finding]:
    """``connection.commit()`` of sqlite3 in each round of a for loop: each one waits until the disk has the file."""
    wall, facts = program.profile.totals.wall_s, program.facts
    if not wall:
        return
    ran, waited = program.ran_s or wall, facts.waiting_at_lines(_OTHERS)
    spent = {(line.file_id, line.line): line.cpu_s for line in facts.lines}
    for place in {**waited, **spent}:
        took = waited.get(place, 0.0) + spent.get(place, 0.0)
        names = program.names(place[0]) if took >= max(MIN_SECONDS, COMMIT_PART * ran) else None
        found = None if names is None or not names.imports("sqlite3") else _commits(names, place[1])
        if found is None:
            continue
        committing = "Each round of the loop commits"
        if found.through:
            committing = (
                f"Each call of “{found.through[0].name}” commits, in each round of the loop of line {found.line}"
            )
        yield Finding(
            min(1.0, took / wall),
            f"{seconds(took)} of {seconds(wall)} committing",
            f"{committing}, and a commit waits until the file is on the disk.",
            "commit once, after the loop (“with connection:” around it), or every few thousand rows",
            *place,
            facts.function(*place),
        )


def _commits(names: Names, line: int) -> Round | None:
    """The for loop whose rounds commit on a line, in a function that it calls or in its body."""
    for node in names.module.expressions(line):
        method = node.func if isinstance(node, ast.Call) and not node.args else None
        if isinstance(method, ast.Attribute) and method.attr == "commit":
            found = round_of(names, node)
            if found is not None and isinstance(found.loop, ast.For):
                return found
    return None


STARTED_PART = 0.30
"""Waiting for such processes at one line, as a part of the time that the program ran."""
LEAST_STARTED = 5
IMPORTING = 0.6
"""The part of their own file's CPU time in its imports: what is left is the work that they are started for."""


def started_again(program: Program) -> Iterator[Finding]:
    """``subprocess.run([sys.executable, ...])`` again and again, of processes that do little but import."""
    wall, facts = program.profile.totals.wall_s, program.facts
    paths = program.profile.calls.tree.paths
    for each in program.profile.parent_waits or ():
        if not wall or (each.children or 0) < LEAST_STARTED or each.wait_s < max(MIN_SECONDS, STARTED_PART * wall):
            continue
        if each.file not in paths or each.child_file not in paths or each.line is None:
            continue
        file, child = paths.index(each.file), paths.index(each.child_file)
        names, started = program.names(file), program.names(child)
        if names is None or started is None or file == child:
            continue
        calls = [node for node in names.module.expressions(each.line) if isinstance(node, ast.Call)]
        own = [line for line in facts.lines if line.file_id == child]
        importing = sum(line.cpu_s for line in own if _imports(started, line.line))
        if not any(names.called(node) in _PROCESSES for node in calls):
            continue
        if importing < IMPORTING * sum(line.cpu_s for line in own):
            continue
        short = each.child_file.rpartition("/")[2]
        yield Finding(
            min(1.0, each.wait_s / wall),
            f"{seconds(each.wait_s)} of {seconds(wall)} waiting for {each.children} processes of {short}",
            f"Each process starts Python and imports what {short} needs, which takes longer than what it does then.",
            f"call the function of {short} in this process (its main(), with the arguments), or have one process do"
            " all; keep one run as a process of its own where that is what is tested",
            file,
            each.line,
            facts.function(file, each.line),
        )


def _imports(names: Names, line: int) -> bool:
    return any(isinstance(each, ast.Import | ast.ImportFrom) for each in names.module.statements.get(line, ()))


RULES = (
    Rule(
        "started-again",
        "waits of a parent for its children, CPU time by line of the file that they run; the call in the source",
        "30 % of the time and 0.3 s at one line, for 5 processes or more, which import for 60 % of their file's time",
        started_again,
    ),
    Rule(
        "blocked-loop",
        "waits with their reasons, and the source text of the coroutine",
        "5 % of the time waiting at one line with a coroutine among its callers, and 0.3 s",
        blocked_loop,
    ),
    Rule(
        "commit-in-loop",
        "waits with their reasons, CPU time by line; the file imports sqlite3",
        "20 % of the time with a processor, and 0.3 s, at one line that commits, and that a loop of the file runs",
        commit_in_loop,
    ),
)
