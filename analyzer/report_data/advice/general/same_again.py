"""Rules about calls that are given the same, or prepare the same, in each round of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import Names
from ....source_code.source import Function, body_of, dotted, names_in, short
from ...numbers import percent
from ..facts import Callee, package_name
from ..program import Finding, Program, Spot, time_figure
from ..rules.scans import changed
from . import verbs
from .hot import LEAST, TRIVIAL, Hot, hot_lines
from .rounds import SAME, Level, Round, Sameness, has_effects, rounds

PREPARES = 0.30
"""The part of a line's time in one function of the library that prepares."""

_SAME_RULES = frozenset(
    {
        *("made-again", "same-each-round", "same-expression", "converted-in-loop", "scan-again", "compiled-each-call"),
        *("pattern-compiled-again", "pattern-in-loop", "fixture-each-test", "chained-indexing", "leak", "in-list"),
        *("pickled", "hash-in-tests", "prepared-inside", "repeated-call", "grown-by-copies", "array-grown-in-loop"),
    }
)
"""Rules whose remedy is the same, or makes this one needless."""

_CACHES = frozenset({"cache", "lru_cache", "cached_property", "memoize", "fixture"})

# The same again.


def repeated_call(program: Program) -> Iterator[Finding]:
    """Calls of a loop that are given the same in each round."""
    found: set[tuple[int, int | None]] = set()
    for hot in hot_lines(program, _SAME_RULES):
        nodes: list[ast.AST] = [*hot.calls, *hot.spot.module.statements.get(hot.spot.line.line, [])[:1]]
        finding = next((each for node in nodes if (each := _repeated(hot, node)) is not None), None)
        if finding is not None and (finding.file_id, finding.line) not in found:
            found.add((finding.file_id, finding.line))
            yield finding
    if found:
        return
    # Functions whose time is divided among many lines: each is as good as another to find the calls above.
    for spot in _largest_lines(program):
        hot = Hot(spot)
        statements = spot.module.statements.get(spot.line.line, [])
        finding = _repeated(hot, statements[0]) if hot.chain and statements and not hot.told_by(_SAME_RULES) else None
        if finding is not None and (finding.file_id, finding.line) not in found:
            found.add((finding.file_id, finding.line))
            yield finding


def _largest_lines(program: Program) -> Iterator[Spot]:
    """The line with most time of each function of the user's own that has much time with all that it calls."""
    functions = program.profile.frames.functions
    for number in (functions["total_cpu_share_low"] >= LEAST).nonzero()[0].tolist():
        row = functions.row(number)
        names = program.names(row["file_id"]) if row["line"] is not None else None
        scope = None if names is None else _function_at(names, row["line"])
        if names is None or scope is None:
            continue
        lines = range(scope.lineno, (scope.end_lineno or scope.lineno) + 1)
        mine = [each for each in program.facts.lines if each.file_id == row["file_id"] and each.line in lines]
        if mine:
            yield Spot(program, mine[0], names)


def _function_at(names: Names, line: int) -> ast.FunctionDef | None:
    """The function that begins on a line, with its decorators."""
    for node in names.module.parent:
        if isinstance(node, ast.FunctionDef) and line in (node.lineno, *(each.lineno for each in node.decorator_list)):
            return node
    return None


def _repeated(hot: Hot, node: ast.AST) -> Finding | None:
    """A call on the way to a node whose arguments are the same in each round of a loop around it."""
    chain, program = hot.levels(node), hot.spot.program
    for around in rounds(chain):
        if around.loop is not None and _leaves_at_once(around):
            continue
        inner = [each for each in rounds(chain) if each.loop is not around.loop and _within(each, around)]
        same = Sameness(chain, around)
        if any(_may_be_others(each, same, n) for n, each in enumerate(chain[1 : around.level + 1], 1)):
            continue
        for number in range(around.level, -1, -1):
            level = chain[number]
            call = level.call if number else node
            if not isinstance(call, ast.Call) or same.of(call, number) != SAME:
                continue
            above = (chain[each].call for each in range(number + 1, around.level + 1))
            given_others = any(each is not None and same.varying(each, n) for n, each in enumerate(above, number + 1))
            if not _matters(call, level, around, chain[around.level], is_own=number > 0, given_others=given_others):
                continue
            if any(has_effects(each.scope, each.names) for each in chain[:number]) or _kept_already(
                chain[: number + 1], call
            ):
                continue
            share, low = program.facts.low(program.facts.cpu_at(level.file, level.line))
            if low < LEAST:
                continue
            varies = any(Sameness(chain, each).of(call, number) != SAME for each in inner if each.level >= number)
            return _again(call, level, around, share, program, varies=varies)
    return None


def _may_be_others(level: Level, same: Sameness, number: int) -> bool:
    """True if what a line calls is not known by its name, and is chosen anew in each round: ``handlers[name]()``."""
    if level.call is not None or level.handed:
        return False
    calls = (each for each in level.names.module.expressions(level.line) if isinstance(each, ast.Call))
    return any(same.varying(each.func, number) for each in calls)


def _within(one: Round, other: Round) -> bool:
    """True if a loop is inside of another one."""
    return one.level < other.level or (one.level == other.level and one.line > other.line)


def _again(call: ast.Call, level: Level, around: Round, share: float, program: Program, *, varies: bool) -> Finding:
    text = short(call)
    if varies:
        what = f"{text} is called for the same values again {around.each}"
        do = "keep the result for each value: in a dict made before that loop, or by functools.cache"
    elif verbs.sets_up(call) and verbs.constructs(call):
        what, do = f"{text} is made anew {around.each}", f"make it {around.before}, and use that object here"
        if isinstance(level.names.module.parent.get(call), ast.withitem):
            do += " without “with”, which closes it"
    elif verbs.converts(call):
        what, do = f"{text} converts the same {around.each}", f"convert it {around.before}"
    else:
        what, do = f"{text} is called again {around.each}", f"call it {around.before}, and keep the result"
    given = ", with the same arguments: nothing in the source changes them meanwhile"
    if not (call.args or call.keywords):
        constructed = verbs.sets_up(call) and verbs.constructs(call) and not varies
        given = "" if constructed else ", of the same data: nothing in the source changes it meanwhile"
    return Finding(
        share,
        time_figure(share, share * program.profile.totals.cpu_s),
        f"{what}{given}.",
        do,
        level.file,
        level.line,
        program.facts.function(level.file, level.line),
    )


def _matters(call: ast.Call, level: Level, around: Round, at: Level, *, is_own: bool, given_others: bool) -> bool:
    """True if the result of a call is used, and the rounds of the loop, which is in ``at``, are not all the same."""
    module = level.names.module
    above = module.parent.get(call)
    if isinstance(above, ast.Expr) or verbs.copies(call):
        return False
    for target in above.targets if isinstance(above, ast.Assign) else ():
        if isinstance(target, ast.Name) and changed(level.scope, {f"[{target.id}]"}):
            return False  # each round has its own to change
    if verbs.sets_up(call) or around.loop is None:
        return verbs.sets_up(call) or verbs.converts(call) or bool(around.by) or is_own
    if isinstance(around.loop, ast.While):
        return False
    if given_others:
        return True
    counted = names_in(around.loop.target)
    used = (each for part in body_of(around.loop, at.names.module) for each in ast.walk(part))
    return any(isinstance(each, ast.Name) and each.id in counted and isinstance(each.ctx, ast.Load) for each in used)


def _leaves_at_once(around: Round) -> bool:
    """True if a loop ends in its first round."""
    body = [] if around.loop is None or isinstance(around.loop, ast.comprehension) else around.loop.body
    return any(isinstance(each, ast.Return | ast.Break | ast.Raise) for each in body)


def _kept_already(chain: list[Level], call: ast.Call) -> bool:
    """True if a cache, or a question whether the result is there, stands before the call."""
    for level in chain:
        if isinstance(level.scope, ast.FunctionDef | ast.AsyncFunctionDef):
            for each in level.scope.decorator_list:
                if (dotted(each.func if isinstance(each, ast.Call) else each) or "").rpartition(".")[2] in _CACHES:
                    return True
        node: ast.AST = level.call or level.node
        while node in level.names.module.parent and not isinstance(node, Function):
            node = level.names.module.parent[node]
            if isinstance(node, ast.ExceptHandler):
                return True
            if isinstance(node, ast.If | ast.IfExp) and _asks_whether_there(node.test):
                return True
    return False


def _asks_whether_there(test: ast.expr) -> bool:
    return any(
        (isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.Is | ast.NotIn | ast.In))
        or (isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not))
        for each in ast.walk(test)
    )


# Set up inside of a library.


_USED_ONCE = ("/subprocess.py", "/threading.py", "/multiprocessing/process.py", "/asyncio/subprocess.py")
"""Files whose objects are for one use: a process or a thread is not started twice."""


def prepared_inside(program: Program) -> Iterator[Finding]:
    """Calls of a loop that most of the time prepare, inside of the library, what they are given each time."""
    for hot in hot_lines(program):
        spot = hot.spot
        inner = _preparing(spot)
        calls = [each for each in spot.expressions() if isinstance(each, ast.Call) and verbs.last(each) not in TRIVIAL]
        share, low = program.facts.low(0.0 if inner is None else inner.total_s)
        if inner is None or not calls or low < LEAST or inner.where.endswith(_USED_ONCE):
            continue
        owner = inner.qualified.split(".")[-2] if "." in inner.qualified else ""
        if any(verbs.last(each) in (owner, inner.name) or verbs.constructs(each) for each in calls):
            continue
        if not any(each.name == verbs.last(calls[0]) for each in spot.below.python):
            continue  # a class by another name: what it makes of its arguments is its work
        call = calls[0]
        chain = hot.levels(call)
        for around in rounds(chain):
            same = Sameness(chain, around)
            given = [*call.args, *(each.value for each in call.keywords)]
            steady = [each for each in given if not isinstance(each, ast.Constant) and same.of(each) == SAME]
            if not steady and not any(isinstance(each, ast.Constant) for each in given[1:]):
                continue
            if not given or [same.of(each) for each in given[1:]].count(SAME) < len(given) - 1:
                continue  # what varies may be what is prepared
            if not same.varying(given[0]) or (spot.names.called(call) or "").startswith("re."):
                continue
            what = f"{owner}.{inner.name}" if owner else inner.name
            made = f"the {owner.lstrip('_')} of {package_name(inner.where)}" if owner else "what it prepares"
            yield spot.finding(
                f"{percent(spot.part(inner.total_s))} % of the time of {short(call)} is in {what}(), inside of"
                f" {package_name(inner.where)}, which prepares anew {around.each}"
                f"{f' what {short(steady[0], 30)} alone decides' if steady else ''}.",
                f"make {made} {around.before}, and call its methods here",
                weight=share,
            )
            break


_COMPILING = frozenset({"compile", "compiler", "compiled"})
_OTHERS_OF_THEIR_OWN = ("/numba/", "/torch/", "/jax/", "/jinja2/", "/re/", "/sre_", "importlib", "/lark/", "/sympy/")
"""Compilers whose cases have rules, or that compile once, when a function is first called."""
MIN_LINES = 3


def compiled_again(program: Program) -> Iterator[Finding]:
    """A library that compiles for several lines of the program, again and again, instead of keeping what it made."""
    if any(rule in ("made-again", "compiled-each-call", "compiled-each-run") for rule in program.told.values()):
        return
    spent, name, path, lines = program.facts.cpu_inside(
        lambda name, path: (
            bool(_COMPILING & set(verbs.words(name.rpartition(".")[2])))
            and "/site-packages/" in path
            and not any(each in path for each in _OTHERS_OF_THEIR_OWN)
        )
    )
    share, low = program.facts.low(spent)
    inner = {at: amount for at, amount in lines.items() if _in_function(program, *at)}
    if low < LEAST or len(inner) < MIN_LINES:
        return
    file, line = max(inner, key=lambda at: inner[at])
    package = package_name(path)
    yield Finding(
        share,
        f"{time_figure(share, spent)} in {name}() of {package}, for {len(inner)} lines",
        f"{package} compiles anew what these lines give it, instead of keeping what it compiled the first time.",
        f"make it once and keep it; where {package} has a cache, find what keeps it from being used: a type or"
        " option that forbids it (cache_ok = False), a size of 0, an engine or environment made each"
        " time, values written into the text in place of parameters",
        file,
        line,
        program.facts.function(file, line),
    )


def _in_function(program: Program, file: int, line: int) -> bool:
    names = program.names(file)
    statements = [] if names is None else names.module.statements.get(line, [])
    return bool(statements) and names is not None and not isinstance(names.module.scope(statements[-1]), ast.Module)


def _preparing(spot: Spot) -> Callee | None:
    """The function of a library that prepares, and has most of a line's time; the outermost one."""
    found = [
        each
        for each in spot.below.python
        if verbs.prepares(each.qualified) and each.total_s >= PREPARES * spot.line.cpu_s and "<frozen" not in each.where
    ]
    return max(found, key=lambda each: each.total_s, default=None)
