"""Rules about memory: what is kept for ever, by what keeps it, and the garbage collector."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ....recording.frame import Row
from ....source_code.names import DICT, LIST, QUEUE, SET, Names
from ....source_code.source import Scope, dotted
from ...numbers import percent, seconds, size
from ..program import Finding, Program, Rule
from .repeated import Round, round_of

GC_SHARE = 0.10
_COLLECT_LESS = "gc.freeze() once data that stays is loaded, and a higher gc.set_threshold()"
MIN_SAMPLES = 100
MAX_LEAKS = 5

GROWTH_SECONDS = 60.0
GROWTH_FROM = 0.2
"""The first part of the time is that in which a program loads what it needs."""
GROWTH_PARTS = 5
GROWTH_STRAIGHT = 0.95
"""The correlation of memory with time."""
GROWTH_SHARE = 0.25
GROWTH_BYTES = 50e6

KEPT_BYTES = 100e6
KEPT_SHARE = 0.5
KEPT_LINE = 0.1
"""The part of the peak that one line of a statement holds."""

_ADDING = frozenset({"append", "appendleft", "add", "extend", "insert", "setdefault", "put", "put_nowait", "update"})
_REMOVING = frozenset({"pop", "popleft", "popitem", "clear", "remove", "discard", "get_nowait"})
_CACHES = ("functools.cache", "functools.lru_cache")


def collector(program: Program) -> Iterator[Finding]:
    """The garbage collector has much of the CPU time."""
    totals = program.profile.totals
    if not totals.gc_s or totals.samples < MIN_SAMPLES:
        return
    collecting = min(totals.gc_s, program.facts.collecting_s())
    share, low = program.facts.low(collecting)
    if low >= GC_SHARE:
        others = totals.gc_s - collecting
        apart = f"; {seconds(others)} more in imports and at interpreter shutdown" if others > 0.1 * totals.gc_s else ""
        text, instead, weight = "The garbage collector looks through containers again and again.", _COLLECT_LESS, share
        below = program.facts.collecting_below()
        if below is not None and below[1] >= 0.5 and below[2] < 0.5:
            # The collector follows from what one function makes: that function comes first, and this suggestion last.
            name, part, _ = below
            text = f"{text[:-1]}, mostly below “{name}”, which has {percent(part)} % of the CPU time with all it calls."
            instead = f"see first whether “{name}” has to run so often or to make so much; then {_COLLECT_LESS}"
            weight = 0.0
        yield Finding(
            weight,
            f"{percent(share)} % of the CPU time ({seconds(collecting)}){apart}",
            text,
            instead,
        )


def leaks(program: Program) -> Iterator[Finding]:
    """Lines whose blocks are not given back, with what the source says about what keeps them."""
    leak_rows = program.profile.frames.leaks
    if leak_rows is None:
        return
    for row in leak_rows.take(slice(MAX_LEAKS)).rows():
        if row["line"] is None:
            continue
        keeper = _keeper(program.names(row["file_id"]), row["line"])
        if keeper is None and _may_be_at_work(program, row):
            continue
        text, instead = keeper or _kept(row)
        yield Finding(
            1.0,  # ahead of what costs time: it ends the program
            f"{size(round(row['rate_bytes_per_s']))}/s not given back, likelihood {row['likelihood'] * 100:.0f} %",
            text,
            instead,
            row["file_id"],
            row["line"],
            row["function"],
        )


def _may_be_at_work(program: Program, row: Row) -> bool:
    """True if libraries hold most of the memory that a line keeps, in a run of less than a minute.

    A library builds a document, a model or an index over seconds, and holds it until it is done with it, or until the
    garbage collector runs. A short run does not show whether the library ever releases it.
    """
    wall = program.profile.totals.wall_s
    if wall is None or wall >= GROWTH_SECONDS:
        return False
    return program.facts.share_of_libraries("live_at_end_bytes", row["file_id"], row["line"]) > 0.5


def _kept(row: Row) -> tuple[str, str]:
    """The text and the advice for memory that a line keeps, where the source does not show the reason."""
    function = row["function"]
    if isinstance(row["native"], str) and row["native"]:
        return (
            f"{function} keeps what {row['native']} allocates in native code.",
            "give it back: close, free or release what the library made, or use it in a with statement",
        )
    return (
        f"{function} keeps what it allocates.",
        "find what still refers to it: a cache without a limit, a list that only grows, a forgotten callback",
    )


def _keeper(names: Names | None, line: int) -> tuple[str, str] | None:
    """The text and the advice for a cache without a limit, or a container that only grows; None if there is neither."""
    if names is None:
        return None
    for statement in names.module.statements.get(line, []):
        cached = _cached(names, names.module.scope(statement))
        if cached:
            return (
                f"{cached} is cached without a limit: each new argument stays for ever.",
                "lru_cache(maxsize=…) with as many entries as are used again",
            )
        name, kind = _container(names, statement)
        if name is None or kind is None or _removed(names, name):
            continue
        if kind == DICT:
            return (
                f"“{name}” is a dict that this line adds to, and nothing in the file removes from it.",
                "a cache with a limit (functools.lru_cache), or remove entries that are done with",
            )
        if kind == QUEUE:
            return (
                f"“{name}” has no limit, and more is put into it than taken out.",
                "a queue with a limit (maxsize=, maxlen=), so that who fills it waits or drops",
            )
        return (
            f"“{name}” is a {kind} that this line adds to, and nothing in the file removes from it.",
            "keep what is needed of each entry, or only the last ones (collections.deque(maxlen=…))",
        )
    return None


def _cached(names: Names, scope: Scope) -> str | None:
    """The name of a function whose results are cached without a limit."""
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    for each in scope.decorator_list:
        if names.called(ast.Call(each, [], [])) == _CACHES[0]:
            return scope.name
        if isinstance(each, ast.Call) and names.called(each) == _CACHES[1]:
            limits = [*each.args[:1], *(keyword.value for keyword in each.keywords if keyword.arg == "maxsize")]
            if any(isinstance(limit, ast.Constant) and limit.value is None for limit in limits):
                return scope.name
    return None


def _container(names: Names, statement: ast.stmt) -> tuple[str | None, str | None]:
    """The container that a statement adds to, and its kind; only one that outlives the call."""
    for node in ast.walk(statement) if not hasattr(statement, "body") else ():
        target: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
            target = node.func.value
        name = None if target is None else dotted(target)
        if target is None or name is None:
            continue
        scope = names.module.scope(target)
        local = (
            isinstance(target, ast.Name) and not isinstance(scope, ast.Module) and target.id in names.bindings(scope)
        )
        kind = names.kind(target)
        if not local and kind in (DICT, LIST, SET, QUEUE):
            return name, kind
    return None, None


def _removed(names: Names, name: str) -> bool:
    """True if anything in the file removes from a container."""
    last = name.rpartition(".")[2]
    for node in names.module.parent:
        if isinstance(node, ast.Delete):
            below = (each.value if isinstance(each, ast.Subscript) else each for each in node.targets)
            if any((dotted(each) or "").rpartition(".")[2] == last for each in below):
                return True
        removes = isinstance(node, ast.Attribute) and node.attr in _REMOVING
        if removes and (dotted(node.value) or "").rpartition(".")[2] == last:  # type: ignore[attr-defined]
            return True
    return False


def growing_process(program: Program) -> Iterator[Finding]:
    """A program that had not ended, and whose memory grew from the first to the last minute."""
    profile = program.profile
    memory, wall = profile.memory, profile.totals.wall_s
    ended = profile.quality.state == "complete" and profile.metadata.rotated is None
    leaking = profile.frames.leaks is not None and len(profile.frames.leaks) > 0
    if memory is None or not wall or wall < GROWTH_SECONDS or ended or leaking:
        return
    points = memory.frames.footprint_sum
    if len(points) < 2:
        return
    times = np.linspace(wall * GROWTH_FROM, wall, 50)
    held = np.interp(times + float(points["time_s"].min()), points["time_s"], points["bytes"])
    lowest = [float(part.min()) for part in np.array_split(held, GROWTH_PARTS)]
    grown = lowest[-1] - lowest[0]
    straight = float(np.corrcoef(times, held)[0, 1]) if grown > 0 else 0.0
    if any(one >= two for one, two in pairwise(lowest)) or straight < GROWTH_STRAIGHT:
        return
    if grown < max(GROWTH_BYTES, GROWTH_SHARE * lowest[0]):
        return
    rate = float(np.polyfit(times, held, 1)[0])
    yield Finding(
        0.9,
        f"{size(round(rate))}/s for {seconds(wall)}: {size(round(lowest[0]))} became {size(round(held[-1]))}",
        "The memory of a program that goes on has grown from the beginning to the end, and never came back.",
        "a limit for what is kept (analyze --sort live has the lines that hold it)",
    )


def kept_copies(program: Program) -> Iterator[Finding]:
    """``states.append(state.copy())`` in a loop, whose copies are most of the memory at the peak."""
    facts, peak = program.facts, program.profile.totals.live_at_peak_bytes
    if not peak or peak < KEPT_BYTES:
        return
    held = facts.amounts("live_at_peak_bytes")
    shown: set[ast.AST] = set()
    for file, line in sorted(held, key=lambda place: -held[place]):
        names = program.names(file) if held[file, line] >= KEPT_LINE * peak else None
        found = None if names is None else _copied_into(names, line)
        if names is None or found is None or found[1] in shown:
            continue
        container, call, around = found
        shown.add(call)
        last = call.end_lineno or call.lineno
        together = sum(kept for (at, on), kept in held.items() if at == file and call.lineno <= on <= last)
        if together < KEPT_SHARE * peak:
            continue
        yield Finding(
            together / peak,
            f"{size(round(together))} of {size(round(peak))} at the peak of memory",
            f"“{container}” keeps copies of each round of the loop of line {around.line}, all at a time.",
            "keep of each what is used later (a sum, a count, a part, a smaller dtype), and only the last one whole; or"
            " write them to a file",
            file,
            line,
            facts.function(file, line),
        )


def _copied_into(names: Names, line: int) -> tuple[str, ast.Call, Round] | None:
    """The container that a loop appends copies to, in a statement of a line; nothing in the file removes from it."""
    for statement in names.module.statements.get(line, ()):
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
            continue
        container = dotted(call.func.value)
        copies = any(_makes_copy(names, node) for each in call.args for node in ast.walk(each))
        around = round_of(names, call) if container and copies and not _removed(names, container) else None
        if container is not None and around is not None:
            return container, call, around
    return None


def _makes_copy(names: Names, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    method = isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args
    return method or names.called(node) in ("copy.copy", "copy.deepcopy", "numpy.array", "numpy.copy")


RULES = (
    Rule(
        "leak",
        "memory; the source text says what keeps it",
        "those of 'tachograph help leaks': a likelihood above 95 %, and growth to the end; and that the source says "
        "what keeps it, or that the line allocated it itself, or a minute: what a library builds may be in use",
        leaks,
    ),
    Rule(
        "kept-copies",
        "memory by line; the source shows the copies, the container, and the loop",
        "half of the memory at the peak, and 100 MB: less is not in the way",
        kept_copies,
    ),
    Rule(
        "growing-process",
        "memory; a recording that was rotated, is still written, or never finished: the program goes on",
        "a minute in which memory grew in each fifth, in a line, by a quarter and by 50 MB; no line is known to leak",
        growing_process,
    ),
    Rule(
        "garbage-collector",
        "program counters in the interpreter",
        "10 % of the CPU time: a collector that is not in the way has 1 to 3 %",
        collector,
    ),
)
