"""Rules about threads and processes: what they take turns in, wait for in series, or share unevenly."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

import numpy as np

from ....recording.frame import Frame, Row
from ....source_code.names import LOCK, Names
from ....source_code.source import Module, dotted, names_in, parts_of, short
from ...numbers import percent, seconds
from ..program import MOSTLY, Finding, Program, Rule

GIL_PART = 0.5
"""Waiting for the GIL, as a part of the threads' Python CPU time: half a second for each second of work."""

LACKED = 3.0
"""Time of the threads without a processor, by their Python CPU time, from which on that is what they wait for.

A thread may hold the GIL meanwhile."""

PYTHON_SHARE = 0.6
"""The part of a pool's CPU time that is Python code, from which on its threads are for that."""

_POOLS = frozenset({"concurrent.futures.ThreadPoolExecutor", "multiprocessing.pool.ThreadPool"})

LEAST_WEIGHT = 0.15
"""The weight of threads that take turns, which comes after that of lines whose work can be less."""

THREAD_SHARE = 0.10
"""A thread that counts has this part of all Python CPU time."""

LOCK_PART = 0.20
"""Waiting for a lock at one line, all threads together, as a part of the time that the program ran."""

SERIES_PART = 0.30
"""Waiting for answers, one after the other, as a part of the time that the program ran."""

BUSY_PART = 0.70
"""The part of all workers' CPU time that one of them has."""

POOL_PART = 0.8
"""The part of the workers' CPU time that was spent below the functions of a pool."""

MIN_WORKERS = 3
TOO_MANY = 1.5
"""Busy threads for each processor, from which on they are too many."""

STARVED = 0.5
"""Waiting for a processor, as a part of the CPU time."""

MIN_SECONDS = 0.3

ALONE = 1.1
"""Time that tasks awaited below a line, by the time that the program ran: more is several tasks at a time."""

_IN_ORDER = frozenset(
    {
        *("execute", "executemany", "fetch", "fetchone", "fetchrow", "fetchval", "fetchall", "commit", "acquire"),
        *("send", "send_text", "send_json", "send_bytes", "write", "drain", "put", "recv", "receive", "get", "read"),
        *("readline", "readexactly", "readuntil", "sleep", "wait", "wait_for", "join", "next"),
    }
)
"""Methods of streams, queues and connections, which serve one call at a time."""

_PAUSES = ("time.sleep", "asyncio.sleep", "trio.sleep", "anyio.sleep")

_REQUESTS = frozenset(
    {"urllib.request.urlopen", "requests.get", "requests.head", "httpx.get", "httpx.head", "urllib3.request"}
)
_WORKERS = (("_process_worker", "/concurrent/futures/process.py"), ("worker", "/multiprocessing/pool.py"))
"""The functions that run the workers of Python's pools of processes, and their files."""


_SERVING = (
    ("run_asgi", "/uvicorn/protocols/http/h11_impl.py"),
    ("run_asgi", "/uvicorn/protocols/http/httptools_impl.py"),
    ("run", "/anyio/_backends/_asyncio.py"),
    ("handle_request", "/gunicorn/workers/gthread.py"),
    ("run_wsgi", "/werkzeug/serving.py"),
)
"""Functions of web servers, below which applications answer; anyio's is that of FastAPI's threads."""


def python_threads(program: Program) -> Iterator[Finding]:
    """Threads that run Python code and wait for each other to let go of the interpreter."""
    profile, facts = program.profile, program.facts
    waited, wall = facts.total_waiting("GIL"), profile.totals.wall_s
    threads = profile.frames.threads
    python_s = np.nan_to_num(threads["python_s"])
    python = float(python_s.sum())
    busy = threads.take(python_s >= max(THREAD_SHARE * python, 1e-9))
    lacked = float(np.nansum(busy["cpu_wait_s"]))
    at_work = float(busy["cpu_s"].sum()) + lacked
    pool = _pool_of_python(program, busy)
    if lacked > LACKED * python and pool is None:
        return
    if not wall or len(busy) < 2 or waited < max(MIN_SECONDS, GIL_PART * python) or at_work < MOSTLY * wall:
        return
    if len(set(busy["process"].tolist())) > 1:
        return  # each process has an interpreter of its own, and which of them was waited for is not known
    by_line = facts.waiting("GIL")
    (file, line) = pool or (max(by_line, key=lambda place: by_line[place]) if by_line else (-1, None))
    yield Finding(
        # Less work in Python is less to take turns in: lines whose work can be less come first.
        min(LEAST_WEIGHT, waited / (waited + python)),
        f"{len(busy)} threads waited {seconds(waited)} for the GIL, for {seconds(python)} of Python",
        "The threads run Python code in turns: one interpreter runs one of them at a time.",
        "processes (concurrent.futures.ProcessPoolExecutor), or a library whose native code works on all of it at once"
        if not _serves(program)
        else "more workers of the server, each a process (uvicorn --workers N, gunicorn --workers N); or less work for"
        " each request",
        file,
        line,
        None if line is None else facts.function(file, line),
    )


def _serves(program: Program) -> bool:
    """True if most of the CPU time is in requests that a web server answers."""
    return program.facts.cpu_below(_SERVING) >= MOSTLY * program.profile.totals.cpu_s


def _pool_of_python(program: Program, busy: Frame) -> tuple[int, int] | None:
    """The file and line of a pool of threads whose workers run Python code, and little else.

    They take turns on any machine, however long they wait for a processor. None if there is no such pool, or another.
    """
    workers = busy.take(~busy["main"])
    share = float(np.nan_to_num(workers["python_s"]).sum()) / max(float(workers["cpu_s"].sum()), 1e-9)
    if len(workers) < 2 or share < PYTHON_SHARE:
        return None
    pools = [
        (file, node.lineno)
        for file, names in program.files()
        for node in names.module.parent
        if isinstance(node, ast.Call) and names.called(node) in _POOLS
    ]
    return pools[0] if len(pools) == 1 else None


def held_lock(program: Program) -> Iterator[Finding]:
    """A lock that is held for most of the time, while other threads wait for it."""
    wall, facts = program.profile.totals.wall_s, program.facts
    if not wall:
        return
    for (file, line), waited in facts.waiting("lock").items():
        names = program.names(file) if waited >= max(MIN_SECONDS, LOCK_PART * wall) else None
        held = None if names is None else _held(names, line)
        if held is None:
            continue
        name, first, last = held
        spent = facts.spent_within(file, first, last)
        if spent >= MOSTLY * wall:
            yield Finding(
                min(1.0, waited / wall / 2),
                f"threads waited {seconds(waited)} for “{name}”, held for {seconds(spent)} of {seconds(wall)}",
                f"The lock is held while lines {first} to {last} run.",
                "prepare what needs no lock before taking it, and hold it only for what other threads must not see"
                " half done",
                file,
                line,
                facts.function(file, line),
            )


def _held(names: Names, line: int) -> tuple[str, int, int] | None:
    """The lock that a ``with`` statement on a line takes, and the lines that it is held for."""
    for statement in names.module.statements.get(line, ()):
        if isinstance(statement, ast.With):
            for item in statement.items:
                name = dotted(item.context_expr)
                if name is not None and names.kind(item.context_expr) == LOCK:
                    last = statement.body[-1]
                    return name, statement.body[0].lineno, last.end_lineno or last.lineno
    return None


def waits_in_series(program: Program) -> Iterator[Finding]:
    """Requests in a loop, none of which needs the answer of another."""
    wall, facts = program.profile.totals.wall_s, program.facts
    if not wall:
        return
    for (file, line), waited in facts.waiting("socket").items():
        if waited < max(MIN_SECONDS, SERIES_PART * wall):
            continue
        names = program.names(file)
        node = None if names is None else _request(names, line)
        if node is not None:
            yield Finding(
                waited / wall,
                f"{seconds(waited)} of {seconds(wall)} waiting for answers",
                f"{short(node)} waits for one answer after the other.",
                "several at once: concurrent.futures.ThreadPoolExecutor().map(), or asyncio.gather()",
                file,
                line,
                facts.function(file, line),
            )


def awaits_in_series(program: Program) -> Iterator[Finding]:
    """``await`` in a for loop none of whose rounds needs the result of another: one answer is awaited at a time."""
    wall, facts = program.profile.totals.wall_s, program.facts
    if not wall:
        return
    awaited = facts.awaited_below()
    taken: set[ast.AST] = set()
    for (file, line), spent in sorted(awaited.items(), key=lambda each: -each[1]):
        # More than the time that the program ran is several tasks at once.
        if not max(MIN_SECONDS, SERIES_PART * wall) <= spent <= ALONE * wall:
            continue
        names = program.names(file)
        node = None if names is None else _awaited(names, line)
        if node is not None and node not in taken:
            taken.add(node)
            yield Finding(
                min(1.0, spent / wall),
                f"{seconds(spent)} of {seconds(wall)} awaiting here, one after the other",
                f"Each round of the loop awaits {short(node.value)} before the next one begins.",
                f"where their order does not matter, several at once: {_at_once(names)} if there are many",
                file,
                line,
                facts.function(file, line),
            )


def _at_once(names: Names | None) -> str:
    """The way to await all calls of a loop together, in the library of tasks that the file imports."""
    if names is not None and names.imports("trio"):
        return "start_soon() of all calls in a trio.open_nursery(), with a trio.CapacityLimiter"
    if names is not None and names.imports("anyio"):
        return "start_soon() of all calls in an anyio.create_task_group(), with an anyio.CapacityLimiter"
    return "await asyncio.gather(*(...)) of all calls, with an asyncio.Semaphore"


def _awaited(names: Names, line: int) -> ast.Await | None:
    """An awaited call on a line, with values of the round of a loop whose rounds do not depend on each other."""
    for node in names.module.expressions(line):
        if not isinstance(node, ast.Await) or not isinstance(node.value, ast.Call):
            continue
        call, loops = node.value, names.module.loops(node)
        if not loops or not isinstance(loops[0], ast.For) or stops(names.module, loops[0], names, awaits=1):
            continue
        given = (*call.args, *(each.value for each in call.keywords))
        parts = [part for value in given for part in ast.walk(value) if isinstance(part, ast.Name)]
        targets = names_in(loops[0].target)
        made = _of_results(node, loops[0])
        others = [each for each in parts if each.id not in targets and each.id not in names.modules]
        ordered = isinstance(call.func, ast.Attribute) and call.func.attr in _IN_ORDER
        if len(others) < len(parts) and not ordered and not any(each.id in made for each in others):
            return node
    return None


def _of_results(node: ast.Await, loop: ast.For) -> set[str]:
    """The names that a loop binds or changes otherwise than by its own count."""
    inside = [each for statement in loop.body for each in ast.walk(statement)]
    bound = {each.id for each in inside if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    methods = {
        each.func.value.id
        for each in inside
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each is not node.value
        if isinstance(each.func.value, ast.Name)
    }
    return bound | methods


def _request(names: Names, line: int) -> ast.Call | None:
    """A request on a line, in a loop whose rounds do not depend on each other."""
    for node in names.module.expressions(line):
        if not isinstance(node, ast.Call) or names.called(node) not in _REQUESTS or not node.args:
            continue
        loops = names.module.loops(node)
        if not loops or isinstance(loops[0], ast.While | ast.AsyncFor) or stops(names.module, loops[0], names):
            continue
        targets = names_in(loops[0].target)
        url_names = [each for each in parts_of(node.args[0]) if isinstance(each, ast.Name)]
        others = [each for each in url_names if each.id not in targets and each.id not in names.modules]
        if len(others) < len(url_names) and all(names.fixed(each, loops[0]) for each in others):
            return node
    return None


def stops(module: Module, loop: ast.AST, names: Names, awaits: int = 0) -> bool:
    """True if a loop may end early, or pauses between its rounds: then they are meant to follow each other.

    ``awaits`` is the number of calls that it may await.
    """
    body = module.parent[loop] if isinstance(loop, ast.comprehension) else loop
    for count, node in enumerate(ast.walk(body)):
        awaits -= isinstance(node, ast.Await)
        if count > 5_000 or awaits < 0 or isinstance(node, ast.Break | ast.Return | ast.Yield | ast.YieldFrom):
            return True
        if isinstance(node, ast.Call) and names.called(node) in _PAUSES:
            return True
    return False


def in_series(program: Program) -> Iterator[Finding]:
    """Answers that are waited for one after the other, by threads or by tasks."""
    yield from waits_in_series(program)
    yield from awaits_in_series(program)


def one_busy_worker(program: Program) -> Iterator[Finding]:
    """A pool of workers of which one has nearly all of the work."""
    totals = program.profile.totals
    whole, wall = totals.cpu_s, totals.wall_s
    if not wall or whole <= 0:
        return
    groups: dict[tuple[int, str, str], list[Row]] = {}
    for row in program.profile.frames.processes.rows():
        if row["parent"] is not None:
            groups.setdefault((row["parent"], str(row["origin"]), row["name"]), []).append(row)
    in_pools = program.facts.cpu_below(_WORKERS) if groups else 0.0
    for rows in groups.values():
        spent = sorted((_or_zero(row["cpu_s"]) for row in rows), reverse=True)
        together = sum(spent)
        if len(rows) < MIN_WORKERS or together < MOSTLY * whole or in_pools < POOL_PART * together:
            continue
        if spent[0] < max(BUSY_PART * together, MIN_SECONDS):
            continue
        yield Finding(
            spent[0] / whole,
            f"one of {len(rows)} workers has {percent(spent[0] / together)} % of their CPU time ({seconds(spent[0])})",
            "The work is not divided: one worker is busy while the others are done.",
            "more and smaller pieces (a smaller chunksize=), the largest first",
        )


def too_many_threads(program: Program) -> Iterator[Finding]:
    """More busy threads of native libraries than processors, waiting for a processor."""
    totals, processors = program.profile.totals, program.profile.metadata.cpu_count
    starved = totals.cpu_wait_s
    if not processors or starved is None or starved < max(MIN_SECONDS, STARVED * totals.cpu_s):
        return
    threads = program.profile.frames.threads
    native = threads.take(~threads["main"] & (np.nan_to_num(threads["python_s"]) == 0) & (threads["cpu_s"] > 0))
    together = float(native["cpu_s"].sum())
    # A thread counts if it had a fair part of the work: those that only started do not compete.
    busy = native.take(native["cpu_s"] * len(native) >= 0.2 * together)
    waiting = float(np.nansum(busy["cpu_wait_s"]))
    # Threads of a library's pool live side by side; those of a server come one after the other.
    at_once = _most_at_once(busy)
    if at_once <= TOO_MANY * processors or at_once < MOSTLY * len(busy):
        return
    if together < MOSTLY * totals.cpu_s or waiting < STARVED * together:
        return
    processes = len(set(busy["process"].tolist()))
    main = threads.take(threads["main"])
    ran, lacked = float(main["cpu_s"].sum()), float(np.nansum(main["cpu_wait_s"]))
    if processes == 1 and ran > 0 and lacked >= LACKED * ran:
        return  # the one thread that always runs lacks a CPU, too: other programs have them
    yield Finding(
        together / totals.cpu_s,
        f"{len(busy)} busy native threads in {processes} process{'es' * (processes > 1)} on {processors} CPUs waited"
        f" {seconds(waiting)} for a CPU",
        "Numerical libraries start a thread for each CPU in each process: together they are more than the machine has.",
        f"OMP_NUM_THREADS={max(1, processors // processes)} (or OPENBLAS_NUM_THREADS, MKL_NUM_THREADS) in each process",
    )


def _most_at_once(threads: Frame) -> int:
    """The most threads that there were at one time."""
    if not len(threads):
        return 0
    last = np.iinfo(np.int64).max
    times = np.concatenate([threads["start_ns"].filled(0), threads["end_ns"].filled(last)])
    changes = np.repeat([1, -1], len(threads))
    # Where one ends as another begins, the end comes first.
    return int(np.cumsum(changes[np.lexsort((changes, times))]).max())


def _or_zero(value: float | None) -> float:
    return 0.0 if value is None or math.isnan(value) else value


RULES = (
    Rule(
        "python-threads",
        "waits with their reasons (recordings from format 1.4 on), CPU time by thread",
        "half a second for the GIL for each second of Python, in a program that is at work half of the time",
        python_threads,
    ),
    Rule(
        "held-lock",
        "waits with their reasons (recordings from format 1.4 on); the lock is made in the same file",
        "waiting for it, in all threads, a fifth of the time, and it is held for half of the time",
        held_lock,
    ),
    Rule(
        "waits-in-series",
        "waits with their reasons, or the time that tasks awaited; the request is made in the loop itself",
        "30 % of the time waiting for sockets at one line, or below a line that one task at a time awaits",
        in_series,
    ),
    Rule(
        "one-busy-worker",
        "CPU time by process, and of the functions that run the workers of Python's pools",
        "70 % of the CPU time of three workers or more, which have half of all of it",
        one_busy_worker,
    ),
    Rule(
        "too-many-threads",
        "CPU time by thread, time in which threads were ready and no processor was free, the number of processors",
        "1.5 busy native threads for each processor, which wait half a second for one for each second of work",
        too_many_threads,
    ),
)
